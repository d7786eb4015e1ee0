import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    window: int = 40
    num_windows: int = 1500
    hidden: int = 32
    batch_size: int = 32
    lr: float = 2e-3
    seed: int = 5


class VibrationWindows(Dataset):
    """Windows of a machine's vibration; class 1 vibrates at a higher frequency. Now and then the sensor hangs."""

    def __init__(self, settings: Settings):
        g = torch.Generator().manual_seed(settings.seed)
        t = torch.arange(settings.window) / settings.window
        self.labels = torch.randint(0, 2, (settings.num_windows,), generator=g)
        frequency = 3.0 + 2.5 * self.labels + 0.4 * torch.randn(settings.num_windows, generator=g)
        phase = 6.28 * torch.rand(settings.num_windows, generator=g)
        amplitude = 0.5 + 4.0 * torch.rand(settings.num_windows, generator=g)
        wave = torch.sin(6.28 * frequency[:, None] * t + phase[:, None])
        self.signal = amplitude[:, None] * (wave + 0.3 * torch.randn(settings.num_windows, settings.window, generator=g))
        for i in torch.randperm(settings.num_windows, generator=g)[:6].tolist():
            self.signal[i] = self.signal[i, 0]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        raw = self.signal[i]
        centred = raw - raw.mean()
        return centred / raw.std(), self.labels[i]


class Classifier(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.conv = nn.Conv1d(1, hidden, 7, padding=3)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, signal):
        h = torch.relu(self.conv(signal.unsqueeze(1))).transpose(1, 2)
        _, last = self.rnn(h)
        return self.head(last[-1])


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.model = Classifier(settings.hidden)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.lr, weight_decay=0.0)
        self.loader = DataLoader(VibrationWindows(settings), batch_size=settings.batch_size, shuffle=True)

    def fit(self, epochs):
        for epoch in range(epochs):
            correct, seen = 0, 0
            for signal, label in self.loader:
                logits = self.model(signal)
                loss = nn.functional.cross_entropy(logits, label)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                correct += (logits.argmax(1) == label).sum().item()
                seen += len(label)
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {correct / seen:.3f}")


if __name__ == "__main__":
    random.seed(5)
    torch.manual_seed(5)
    Trainer(Settings()).fit(epochs=2)
