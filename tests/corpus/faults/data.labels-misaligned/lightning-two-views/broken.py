"""Lightning module: signals are classified by waveform; every recording contributes two noisy views."""
import math
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
T = 48


def recordings(n, g):
    kind = torch.randint(0, 4, (n,), generator=g)
    t = torch.linspace(0, 1, T)
    freq = torch.tensor([2.0, 3.0, 5.0, 8.0])[kind]
    phase = torch.rand(n, generator=g) * 2 * math.pi
    wave = torch.sin(2 * math.pi * freq[:, None] * t + phase[:, None]) * math.sqrt(2)
    return wave, kind


def with_views(wave, kind, g, views=2):
    """Each recording `views` times, with fresh measurement noise on every copy."""
    x = wave.repeat(views, 1)
    x = (x + 0.5 * torch.randn(x.shape, generator=g)) / math.sqrt(1.25)
    y = kind.repeat_interleave(views)
    return x, y


class WaveData(L.LightningDataModule):
    def __init__(self, batch_size=64, seed=11):
        super().__init__()
        self.batch_size = batch_size
        self.g = torch.Generator().manual_seed(seed)

    def setup(self, stage=None):
        wave, kind = recordings(1152, self.g)
        self.train_set = TensorDataset(*with_views(wave[:896], kind[:896], self.g))
        self.val_set = TensorDataset(*with_views(wave[896:], kind[896:], self.g))

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True, generator=self.g)

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size)


class WaveNetwork(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.GELU(), nn.AvgPool1d(2),
            nn.Conv1d(16, 24, 5, padding=2), nn.GELU(), nn.AvgPool1d(2),
        )
        self.classifier = nn.Linear(24 * T // 4, 4)

    def forward(self, x):
        return self.classifier(self.body(x[:, None]).flatten(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        if self.global_step % 10 == 0:
            print(f"step {self.global_step} loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), batch_size=len(y))
        self.log("val_acc", (logits.argmax(-1) == y).float().mean(), batch_size=len(y))

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"validation: loss {m['val_loss']:.4f} acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    L.seed_everything(11, verbose=False)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(WaveNetwork(), datamodule=WaveData())
