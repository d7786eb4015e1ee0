"""Sensor windows, one class each: bidirectional GRU with additive attention pooling, as a Lightning module."""
import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def windows(n, steps, rng):
    """Noise with a short burst somewhere; the two channels' signs in the burst make the class."""
    x = rng.normal(size=(n, steps, 3)).astype(np.float32)
    y = rng.integers(0, 4, size=n)
    at = rng.integers(0, steps - 3, size=n)
    for i in range(n):
        x[i, at[i] : at[i] + 3, 0] += 3.0 if y[i] & 1 else -3.0
        x[i, at[i] : at[i] + 3, 1] += 3.0 if y[i] & 2 else -3.0
    return x, y


class AttentionPool(nn.Module):
    """Weighs the time steps of (batch, time, features) and sums them."""

    def __init__(self, features, hidden=24):
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.energy = nn.Linear(hidden, 1, bias=False)

    def forward(self, states):
        weights = F.softmax(self.energy(torch.tanh(self.hidden(states))), dim=1)
        return (weights * states).sum(dim=1)


class BurstClassifier(L.LightningModule):
    def __init__(self, lr=4e-3):
        super().__init__()
        self.lr = lr
        self.gru = nn.GRU(3, 20, batch_first=True, bidirectional=True)
        self.pool = AttentionPool(40)
        self.head = nn.Linear(40, 4)

    def forward(self, x):
        states, _ = self.gru(x)
        return self.head(self.pool(states))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        if batch_idx % 10 == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_acc", (logits.argmax(-1) == y).float().mean())

    def on_validation_epoch_end(self):
        print(f"validation accuracy {self.trainer.callback_metrics['val_acc'].item():.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(17, verbose=False)
    rng = np.random.default_rng(17)
    x, y = windows(1200, 20, rng)
    mean, std = x[:1000].mean((0, 1)), x[:1000].std((0, 1))
    data = TensorDataset(torch.from_numpy((x - mean) / std), torch.from_numpy(y))
    train = torch.utils.data.Subset(data, range(1000))
    valid = torch.utils.data.Subset(data, range(1000, 1200))
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    trainer.fit(BurstClassifier(), DataLoader(train, 40, shuffle=True), DataLoader(valid, 200))


if __name__ == "__main__":
    main()
