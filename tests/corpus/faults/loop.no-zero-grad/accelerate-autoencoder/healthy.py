"""Denoising autoencoder under Accelerate."""
from argparse import ArgumentParser

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def low_rank_vectors(n, dim=32, rank=4):
    """Points near a curved `rank`-dimensional sheet."""
    code = torch.randn(n, rank)
    mix = torch.randn(rank, dim)
    return torch.tanh(code @ mix * 0.7)


class Autoencoder(nn.Module):
    def __init__(self, dim=32, bottleneck=8):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(dim, 64), nn.ELU(), nn.Linear(64, bottleneck))
        self.decode = nn.Sequential(nn.Linear(bottleneck, 64), nn.ELU(), nn.Linear(64, dim))

    def forward(self, x):
        return self.decode(self.encode(x))


def main():
    parser = ArgumentParser()
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--noise", type=float, default=0.3)
    args = parser.parse_args()

    set_seed(31)
    accelerator = Accelerator(cpu=True)

    data = low_rank_vectors(2048 + 512)
    data = (data - data[:2048].mean(0)) / data[:2048].std(0)
    train_loader = DataLoader(TensorDataset(data[:2048]), batch_size=args.batch_size, shuffle=True)
    eval_loader = DataLoader(TensorDataset(data[2048:]), batch_size=args.batch_size)

    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    total = args.epochs * len(train_loader)
    scheduler = LambdaLR(optimizer, lambda s: 1.0 - 0.8 * s / total)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    criterion = nn.MSELoss()

    for epoch in range(args.epochs):
        model.train()
        for step, (clean,) in enumerate(train_loader):
            noisy = clean + args.noise * torch.randn_like(clean)
            loss = criterion(model(noisy), clean)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            if step % 8 == 0:
                accelerator.print(f"epoch {epoch} step {step:3d} loss {loss.item():.4f}")

        model.eval()
        errors = []
        for (clean,) in eval_loader:
            with torch.no_grad():
                err = (model(clean) - clean).pow(2).mean(dim=1)
            errors.append(accelerator.gather_for_metrics(err))
        accelerator.print(f"epoch {epoch} reconstruction error {torch.cat(errors).mean().item():.4f}")


if __name__ == "__main__":
    main()
