"""Hand gesture recognition from 6-axis IMU windows (Lightning)."""

from argparse import ArgumentParser

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_windows(n=800, steps=32, channels=6, classes=5):
    g = torch.Generator().manual_seed(4)
    labels = torch.randint(0, classes, (n,), generator=g)
    t = torch.linspace(0, 1, steps)
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    freq = (labels.float() + 1.0).view(-1, 1, 1)
    tilt = torch.linspace(0, 1.5, channels).view(1, -1, 1)
    x = torch.sin(6.28 * freq * t.view(1, 1, -1) + phase + tilt) + 0.7 * torch.randn(n, channels, steps, generator=g)
    train = x[:640]
    x = (x - train.mean(dim=(0, 2), keepdim=True)) / train.std(dim=(0, 2), keepdim=True)
    return TensorDataset(x[:640], labels[:640]), TensorDataset(x[640:], labels[640:])


class GestureData(L.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train_set, self.val_set = make_windows()

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=80)


class GestureNet(L.LightningModule):
    def __init__(self, lr, channels=6, classes=5, width=32):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Conv1d(channels, width, 5, padding=2)
        self.mix = nn.Conv1d(width, width, 5, padding=2)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        h = F.relu(self.stem(x))
        h = F.max_pool1d(F.relu(self.mix(h)), 2)
        h, _ = self.rnn(h.transpose(1, 2))
        return self.head(h.mean(dim=1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: val_loss {metrics['val_loss']:.4f} val_acc {metrics['val_acc']:.3f}")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--max_epochs", type=int, default=6)
    args = parser.parse_args()
    L.seed_everything(4)
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(GestureNet(args.lr), datamodule=GestureData(args.batch_size))
