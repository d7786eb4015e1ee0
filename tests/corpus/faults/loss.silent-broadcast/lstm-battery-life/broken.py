"""Remaining battery life from charge curves: LSTM, hand-written Huber loss, trainer class."""
import numpy as np
import torch
from torch import nn


class ChargeCurves:
    """Synthetic cells: the faster the voltage sags over the cycle, the less life is left."""

    def __init__(self, cells, steps=24, seed=0):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 1, steps)
        health = rng.uniform(0.2, 1.0, size=cells)
        temperature = rng.normal(size=cells)
        sag = (1.3 - health)[:, None] * t**2
        ripple = 0.05 * np.sin(20 * t[None, :] + temperature[:, None])
        voltage = 1.0 - sag + ripple + 0.02 * rng.normal(size=(cells, steps))
        warmth = temperature[:, None] + 0.3 * rng.normal(size=(cells, steps))
        self.curves = np.stack([voltage, warmth], axis=-1).astype(np.float32)
        self.life = (health * 10 - 0.5 * temperature).astype(np.float32)

    def split(self, at):
        mean, std = self.curves[:at].mean((0, 1)), self.curves[:at].std((0, 1))
        curves = torch.from_numpy((self.curves - mean) / std)
        life = torch.from_numpy((self.life - self.life[:at].mean()) / self.life[:at].std())
        return (curves[:at], life[:at]), (curves[at:], life[at:])


class LifeModel(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.regressor = nn.Linear(hidden, 1)

    def forward(self, curves):
        _, (hidden, _) = self.lstm(curves)
        return self.regressor(hidden[-1])


def huber(prediction, target, delta=1.0):
    error = (prediction - target).abs()
    quadratic = error.clamp(max=delta)
    return (0.5 * quadratic**2 + delta * (error - quadratic)).mean()


class LifeTrainer:
    def __init__(self, model, train, valid, lr=8e-3, batch=48):
        self.model, self.train_data, self.valid_data = model, train, valid
        self.batch = batch
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def run_epoch(self):
        self.model.train()
        curves, life = self.train_data
        losses = []
        for rows in torch.randperm(len(life)).split(self.batch):
            self.optimizer.zero_grad()
            prediction = self.model(curves[rows])
            loss = huber(prediction, life[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def score(self):
        self.model.eval()
        curves, life = self.valid_data
        prediction = self.model(curves).flatten()
        return torch.corrcoef(torch.stack([prediction, life]))[0, 1].item()


if __name__ == "__main__":
    np.random.seed(20)
    torch.manual_seed(20)
    train, valid = ChargeCurves(1700, seed=20).split(1450)
    trainer = LifeTrainer(LifeModel(), train, valid)
    for epoch in range(3):
        print(f"epoch {epoch} loss {trainer.run_epoch():.4f} correlation {trainer.score():.3f}")
