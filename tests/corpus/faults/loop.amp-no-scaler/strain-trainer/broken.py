"""Surrogate for a finite-element model: strain (metres per metre) from normalised load parameters."""
import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


MILLISTRAIN = 1e-3


@dataclass
class Batch:
    loads: torch.Tensor
    strain: torch.Tensor


def simulate(n: int, gen: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Twelve loads in, strain at sixteen gauges out. Strains are of the order of a millistrain."""
    loads = torch.randn(n, 12, generator=gen)
    mix = torch.randn(12, 16, generator=torch.Generator().manual_seed(0)) / 12 ** 0.5
    strain = MILLISTRAIN * (torch.tanh(loads @ mix) + 0.02 * torch.randn(n, 16, generator=gen))
    return loads, strain


class Surrogate(nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(12, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 16)
        )

    def forward(self, loads: torch.Tensor) -> torch.Tensor:
        return MILLISTRAIN * self.layers(loads).float()


class SurrogateTrainer:
    def __init__(self, args: argparse.Namespace):
        gen = torch.Generator().manual_seed(args.seed)
        self.args = args
        self.model = Surrogate()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.lr, eps=1e-14)
        self.loader = DataLoader(
            TensorDataset(*simulate(3072, gen)), batch_size=args.batch_size, shuffle=True, generator=gen
        )
        self.held_out = Batch(*simulate(512, gen))

    def loss(self, batch: Batch) -> torch.Tensor:
        with torch.autocast(device_type="cpu", dtype=torch.float16, enabled=self.args.amp):
            predicted = self.model(batch.loads)
        return nn.functional.mse_loss(predicted, batch.strain)

    def step(self, batch: Batch) -> float:
        self.optimizer.zero_grad()
        loss = self.loss(batch)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def explained(self) -> float:
        self.model.eval()
        residual = self.held_out.strain - self.model(self.held_out.loads)
        self.model.train()
        return 1.0 - (residual.var() / self.held_out.strain.var()).item()

    def run(self) -> None:
        for epoch in range(self.args.epochs):
            losses = [self.step(Batch(*tensors)) for tensors in self.loader]
            print(
                f"epoch {epoch}: loss {losses[0]:.3e} -> {losses[-1]:.3e}, "
                f"explained variance on held-out loads {self.explained():.3f}"
            )


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=4)
    cli.add_argument("--batch-size", type=int, default=128)
    cli.add_argument("--lr", type=float, default=2e-3)
    cli.add_argument("--seed", type=int, default=4)
    cli.add_argument("--no-amp", dest="amp", action="store_false")
    options = cli.parse_args()
    torch.manual_seed(options.seed)
    SurrogateTrainer(options).run()
