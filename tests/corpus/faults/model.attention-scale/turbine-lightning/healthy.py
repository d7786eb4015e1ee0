"""Forecasts the next hours of a turbine signal with a Lightning module and hand-written attention."""

import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class TurbineWindows(Dataset):
    def __init__(self, num, history=24, horizon=4, seed=0):
        gen = torch.Generator().manual_seed(seed)
        t = torch.arange(history + horizon).float()
        period = torch.rand(num, 1, generator=gen) * 8 + 6
        phase = torch.rand(num, 1, generator=gen) * 6.28
        amplitude = torch.rand(num, 1, generator=gen) + 0.8
        series = amplitude * torch.sin(6.2832 * t / period + phase)
        series = series + 0.1 * torch.randn(series.shape, generator=gen)
        slope = torch.zeros_like(series)
        slope[:, 1:] = series[:, 1:] - series[:, :-1]
        self.inputs = torch.stack([series, slope], dim=-1)[:, :history]
        self.targets = series[:, history:]

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.inputs[i], self.targets[i]


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        assert dim % heads == 0
        self.heads = heads
        self.head_dim = dim // heads
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)
        for lin in (self.to_q, self.to_k, self.to_v, self.proj):
            nn.init.xavier_uniform_(lin.weight)
            nn.init.zeros_(lin.bias)

    def forward(self, x):
        b, n, d = x.shape
        q = self.to_q(x).reshape(b, n, self.heads, self.head_dim).transpose(1, 2)
        k = self.to_k(x).reshape(b, n, self.heads, self.head_dim).transpose(1, 2)
        v = self.to_v(x).reshape(b, n, self.heads, self.head_dim).transpose(1, 2)
        attn = q @ k.transpose(-2, -1) / self.head_dim**0.5
        attn = attn.softmax(dim=-1)
        out = (attn @ v).transpose(1, 2).reshape(b, n, d)
        return self.proj(out)


class Encoder(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.attn = MultiHeadAttention(dim, heads)
        self.ln2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Forecaster(L.LightningModule):
    def __init__(self, dim=64, heads=2, depth=2, history=24, horizon=4, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.inp = nn.Linear(2, dim)
        self.pos = nn.Parameter(torch.randn(1, history, dim) * 0.1)
        self.encoder = nn.Sequential(*[Encoder(dim, heads) for _ in range(depth)])
        self.out = nn.Linear(dim, horizon)

    def forward(self, x):
        h = self.encoder(self.inp(x) + self.pos)
        return self.out(h[:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.mse_loss(self(x), y))

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch} val_loss {self.trainer.callback_metrics['val_loss']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(8)
    train = DataLoader(TurbineWindows(960, seed=1), batch_size=32, shuffle=True)
    val = DataLoader(TurbineWindows(160, seed=2), batch_size=80)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Forecaster(), train, val)


if __name__ == "__main__":
    main()
