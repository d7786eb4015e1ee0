import logging
import warnings
from dataclasses import dataclass

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


@dataclass
class Hyper:
    hidden: int = 40
    lr: float = 0.08
    momentum: float = 0.9
    max_norm: float = 0.4
    batch: int = 32


class NoisyOscillators(Dataset):
    """Predict the next value of a damped oscillator from a noisy past."""

    def __init__(self, count, length=40, seed=0):
        rng = np.random.default_rng(seed)
        t = np.arange(length + 1)
        freq = rng.uniform(0.1, 0.5, (count, 1))
        decay = rng.uniform(0.0, 0.03, (count, 1))
        wave = np.exp(-decay * t) * np.sin(freq * t + rng.uniform(0, 6.28, (count, 1)))
        wave = wave / wave.std()
        self.past = torch.tensor(wave[:, :-1] + 0.1 * rng.standard_normal((count, length)), dtype=torch.float32)
        self.future = torch.tensor(wave[:, 1:], dtype=torch.float32)

    def __len__(self):
        return len(self.past)

    def __getitem__(self, i):
        return self.past[i].unsqueeze(-1), self.future[i].unsqueeze(-1)


class Forecaster(pl.LightningModule):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp
        self.rnn = nn.GRU(1, hp.hidden, num_layers=2, batch_first=True)
        self.read = nn.Linear(hp.hidden, 1)
        self.seen = []

    def forward(self, past):
        states, _ = self.rnn(past)
        return self.read(states)

    def training_step(self, batch, _):
        past, future = batch
        loss = 4.0 * F.mse_loss(self(past), future)
        self.seen.append(loss.item())
        return loss

    def on_before_zero_grad(self, optimizer):
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.hp.max_norm)

    def validation_step(self, batch, _):
        past, future = batch
        self.log("val_mse", F.mse_loss(self(past), future))

    def on_validation_epoch_end(self):
        if self.seen:
            print(f"train {np.mean(self.seen):.4f}  val mse {self.trainer.callback_metrics['val_mse']:.4f}")
            self.seen.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hp.lr, momentum=self.hp.momentum)


def main():
    pl.seed_everything(17, verbose=False)
    hp = Hyper()
    fit = DataLoader(NoisyOscillators(640, seed=1), batch_size=hp.batch, shuffle=True)
    val = DataLoader(NoisyOscillators(128, seed=2), batch_size=64)
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Forecaster(hp), fit, val)


if __name__ == "__main__":
    main()
