"""Two ranks over gloo: a DistributedSampler, no_sync on the first of two micro-batches. Prints each
rank's losses bit for bit.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(128, 8)
    data = TensorDataset(x, (x.sum(1) > 0).long())
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, (inputs, labels) in enumerate(loader):
            if i % 2 == 0:
                with model.no_sync():
                    loss = nn.functional.cross_entropy(model(inputs), labels) / 2
                    loss.backward()
            else:
                loss = nn.functional.cross_entropy(model(inputs), labels) / 2
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
    total = torch.tensor(losses).sum()
    dist.all_reduce(total)
    print(
        f"rank{os.environ['RANK']} "
        + " ".join(x.hex() for x in losses)
        + f" total {total.item().hex()}",
        flush=True,
    )
    dist.destroy_process_group()


main()
