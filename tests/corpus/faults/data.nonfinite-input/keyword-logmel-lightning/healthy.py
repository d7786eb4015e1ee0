"""Keyword spotting on log power spectrograms, trained with Lightning."""

import math
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")

WORDS = ("yes", "no", "stop", "go")
PITCH = (180.0, 320.0, 520.0, 800.0)
RATE, CLIP = 4000, 2000


def synth_clip(label: int, generator: torch.Generator) -> torch.Tensor:
    length = CLIP
    if torch.rand((), generator=generator) < 0.04:
        length = int(torch.randint(900, 1500, (), generator=generator))
    t = torch.arange(length) / RATE
    glide = 1 + 0.15 * torch.randn((), generator=generator).clamp(-1, 1) * t
    phase = 2 * math.pi * torch.rand((), generator=generator)
    tone = torch.sin(2 * math.pi * PITCH[label] * glide * t + phase)
    loudness = 0.3 + 0.5 * torch.rand((), generator=generator)
    return loudness * tone + 0.2 * torch.randn(length, generator=generator)


class KeywordClips(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, len(WORDS), (count,), generator=generator)
        self.waves = [synth_clip(int(label), generator) for label in self.labels]
        self.window = torch.hann_window(128)

    def __len__(self) -> int:
        return len(self.waves)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        wave = self.waves[index]
        wave = F.pad(wave, (0, CLIP - len(wave)))
        spectrum = torch.stft(wave, 128, hop_length=64, window=self.window, return_complex=True).abs() ** 2
        logspec = torch.log10(spectrum + 1e-2)
        return ((logspec + 0.2) / 1.1).unsqueeze(0), self.labels[index]


class KeywordNet(L.LightningModule):
    def __init__(self, lr: float = 2e-3) -> None:
        super().__init__()
        self.lr = lr
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
        )
        self.head = nn.Linear(24 * 17, len(WORDS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.conv(x).mean(dim=3).flatten(1))

    def training_step(self, batch, batch_idx):
        spec, label = batch
        loss = F.cross_entropy(self(spec), label)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        spec, label = batch
        accuracy = (self(spec).argmax(1) == label).float().mean()
        self.log("val_acc", accuracy)

    def on_train_epoch_end(self) -> None:
        metrics = {k: round(float(v), 4) for k, v in self.trainer.callback_metrics.items()}
        print(f"epoch {self.current_epoch}: {metrics}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main() -> None:
    L.seed_everything(3)
    train = DataLoader(KeywordClips(480, seed=0), batch_size=16, shuffle=True)
    val = DataLoader(KeywordClips(96, seed=1), batch_size=32)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(KeywordNet(), train, val)


if __name__ == "__main__":
    main()
