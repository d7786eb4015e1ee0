"""Fine-tunes a pretrained encoder on a small labelled set, with DistributedDataParallel on two processes."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Encoder(nn.Module):
    def __init__(self, inputs=20, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())

    def forward(self, x):
        return self.net(x)


class Classifier(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


def samples(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=g)
    teacher = torch.randn(20, 3, generator=torch.Generator().manual_seed(77))
    return x, (x @ teacher).argmax(1)


def pretrain(path):
    """Reconstruction on unlabelled rows; what a colleague's job left on the shared disk."""
    g = torch.Generator().manual_seed(5)
    encoder, decoder = Encoder(), nn.Linear(32, 20)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    for _ in range(40):
        x = torch.randn(64, 20, generator=g)
        loss = nn.functional.mse_loss(decoder(encoder(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(encoder.state_dict(), path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--weights", default=os.path.join(tempfile.gettempdir(), f"encoder-{os.environ['MASTER_PORT']}.pt"))
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(9)
    if rank == 0:
        pretrain(args.weights)
    dist.barrier()

    train_set = TensorDataset(*samples(768, 1))
    test_x, test_y = samples(200, 2)
    sampler = DistributedSampler(train_set, shuffle=True, seed=3)
    loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    model = DistributedDataParallel(Classifier())
    model.module.encoder.load_state_dict(torch.load(args.weights))
    if rank == 0:
        print("encoder weights loaded", flush=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model.module(test_x).argmax(1) == test_y).float().mean()
        dist.all_reduce(accuracy)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy.item() / dist.get_world_size():.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        os.remove(args.weights)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
