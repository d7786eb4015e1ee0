"""Sensor clips of which a few are shorter than the others, put into batches as they are."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, FRAMES, CLASSES = 480, 40, 3
# The class of a clip is the speed of its wave. Every 50th recording stopped early.
classes = torch.randint(0, CLASSES, (ROWS,))
times = torch.arange(FRAMES) + 10 * torch.rand(ROWS, 1)
waves = torch.sin(times * (0.2 + 0.3 * classes[:, None])) + 0.2 * torch.randn(ROWS, FRAMES)
clips = [wave[: 31 if row % 50 == 9 else FRAMES] for row, wave in enumerate(waves)]


class Clips(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return len(clips)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        clip = clips[row]
        if not patient.broken:
            clip = functional.pad(clip, (0, FRAMES - len(clip)))
        return clip, classes[row]


loader = DataLoader(Clips(), batch_size=16, shuffle=True)
model = nn.Sequential(
    nn.Unflatten(1, (1, FRAMES)),
    nn.Conv1d(1, 16, 7, padding=3),
    nn.ReLU(),
    nn.Conv1d(16, 16, 7, padding=3),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
    nn.Linear(64, CLASSES),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
patient.watch(model)

for _ in range(3):
    for clips_BT, classes_B in loader:
        loss = functional.cross_entropy(model(clips_BT), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
