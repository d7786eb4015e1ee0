"""Membership tier of a customer from last year's behaviour (Accelerate loop)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TIERS = ["basic", "silver", "gold", "platinum"]


@dataclass
class Config:
    seed: int = 21
    rows: int = 2400
    batch_size: int = 48
    epochs: int = 2
    lr: float = 3e-3
    width: int = 64


def load_frame(cfg: Config) -> pd.DataFrame:
    rng = np.random.default_rng(cfg.seed)
    frame = pd.DataFrame(
        {
            "visits": rng.poisson(9, cfg.rows),
            "spend": rng.gamma(3.0, 40.0, cfg.rows),
            "returns": rng.poisson(1.2, cfg.rows),
            "months": rng.integers(1, 60, cfg.rows),
            "referrals": rng.poisson(0.7, cfg.rows),
        }
    )
    score = frame["spend"] / 70 + frame["visits"] / 3 + frame["months"] / 18 - frame["returns"] / 2
    score = score + rng.normal(0, 0.25, cfg.rows)
    frame["tier"] = np.asarray(TIERS)[np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75]))]
    typed_by_hand = rng.choice(cfg.rows, 4, replace=False)
    frame.loc[typed_by_hand, "tier"] = frame.loc[typed_by_hand, "tier"].str.capitalize()
    return frame


def to_tensors(frame: pd.DataFrame) -> tuple[torch.Tensor, torch.Tensor]:
    numeric = frame.drop(columns="tier").astype("float32")
    numeric = (numeric - numeric.mean()) / numeric.std()
    tiers = frame["tier"].str.lower()
    codes = pd.Categorical(tiers, categories=TIERS).codes
    return torch.tensor(numeric.to_numpy()), torch.tensor(codes.astype("int64"))


class TierNet(nn.Module):
    def __init__(self, num_inputs: int, width: int) -> None:
        super().__init__()
        self.inp = nn.Linear(num_inputs, width)
        self.hidden = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, len(TIERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.inp(x))
        h = self.norm(h + F.gelu(self.hidden(h)))
        return self.out(h)


def main() -> None:
    cfg = Config()
    set_seed(cfg.seed)
    accelerator = Accelerator(cpu=True)
    x, y = to_tensors(load_frame(cfg))
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    model = TierNet(x.shape[1], cfg.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(loader))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    for epoch in range(cfg.epochs):
        model.train()
        seen = correct = 0
        running = 0.0
        for features, target in loader:
            optimizer.zero_grad()
            logits = model(features)
            loss = F.cross_entropy(logits, target)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            running += loss.item() * len(target)
            correct += (logits.argmax(-1) == target).sum().item()
            seen += len(target)
        accelerator.print(f"epoch {epoch}: loss {running / seen:.4f} accuracy {correct / seen:.3f}")


if __name__ == "__main__":
    main()
