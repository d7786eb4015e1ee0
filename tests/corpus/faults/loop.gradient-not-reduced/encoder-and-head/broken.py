"""Land-use from short satellite time series: an encoder and a separate head, two processes under torchrun."""

import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BANDS, DATES, CLASSES = 5, 12, 6


def make_series(count, seed):
    g = torch.Generator().manual_seed(seed)
    shapes = torch.randn(CLASSES, DATES, BANDS, generator=torch.Generator().manual_seed(100))
    y = torch.randint(0, CLASSES, (count,), generator=g)
    x = shapes[y] + 0.9 * torch.randn(count, DATES, BANDS, generator=g)
    return TensorDataset(x / 1.35, y)


class Encoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.conv = nn.Conv1d(BANDS, width, 3, padding=1)
        self.mix = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 3, padding=1), nn.ReLU())

    def forward(self, x):
        return self.mix(self.conv(x.transpose(1, 2))).mean(-1)


class Head(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.fc1 = nn.Linear(width, 32)
        self.fc2 = nn.Linear(32, CLASSES)

    def forward(self, h):
        return self.fc2(torch.relu(self.fc1(h)))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(12)

    train = make_series(960, seed=1)
    sampler = DistributedSampler(train, shuffle=True, seed=12)
    loader = DataLoader(train, batch_size=24, sampler=sampler)
    x_test, y_test = make_series(240, seed=2).tensors

    encoder = DDP(Encoder())
    head = Head()
    optimizer = torch.optim.Adam(itertools.chain(encoder.parameters(), head.parameters()), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()

    for epoch in range(5):
        sampler.set_epoch(epoch)
        encoder.train()
        head.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(head(encoder(x)), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        encoder.eval()
        head.eval()
        with torch.no_grad():
            accuracy = (head(encoder(x_test)).argmax(1) == y_test).float().mean()
        if rank == 0:
            print(f"epoch {epoch} loss {total / len(loader):.4f} test accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
