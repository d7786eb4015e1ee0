import logging
import math
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def fake_mel(n, frames=32, bins=16, keywords=6, seed=0):
    """Keyword spotting: each word is a fixed sweep through the mel bins, at a random offset and loudness."""
    rng = np.random.default_rng(seed)
    words = np.random.default_rng(1234).normal(0, 1.0, (keywords, 12, bins))
    y = rng.integers(0, keywords, n)
    x = 0.7 * rng.standard_normal((n, frames, bins))
    for i, k in enumerate(y):
        at = rng.integers(0, frames - 12)
        x[i, at : at + 12] += rng.uniform(0.8, 1.2) * words[k]
    x = (x - x.mean()) / x.std()
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


class KeywordSpotter(L.LightningModule):
    def __init__(self, bins=16, width=48, keywords=6, peak_lr=3e-3, warmup=20, total=96):
        super().__init__()
        self.save_hyperparameters()
        self.front = nn.Sequential(nn.Conv1d(bins, width, 5, padding=2), nn.GELU(), nn.Conv1d(width, width, 3, stride=2, padding=1), nn.GELU())
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.classify = nn.Linear(2 * width, keywords)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, mel):
        h = self.front(mel.transpose(1, 2)).transpose(1, 2)
        h, _ = self.gru(h)
        return self.classify(h.mean(dim=1))

    def training_step(self, batch, batch_idx):
        mel, word = batch
        loss = self.criterion(self(mel), word)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        mel, word = batch
        self.log("val_acc", (self(mel).argmax(-1) == word).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: loss {m['train_loss']:.4f} acc {m['val_acc']:.3f} lr {self.optimizers().param_groups[0]['lr']:.2e}")

    def configure_optimizers(self):
        hp = self.hparams
        opt = torch.optim.AdamW(self.parameters(), lr=hp.peak_lr, weight_decay=0.0)

        def factor(step):
            if step < hp.warmup:
                return (step + 1) / hp.warmup
            progress = (step - hp.warmup) / max(1, hp.total - hp.warmup)
            return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

        sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched}}


def main():
    L.seed_everything(3, verbose=False)
    train = DataLoader(fake_mel(768, seed=1), batch_size=32, shuffle=True)
    val = DataLoader(fake_mel(192, seed=2), batch_size=96)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(KeywordSpotter(), train, val)


if __name__ == "__main__":
    main()
