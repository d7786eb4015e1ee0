"""A series classifier whose metrics go through a pipe to a collector that is slower than training."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import time

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 960
PAGE = 4096
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.4
loader = DataLoader(TensorDataset(series, classes), batch_size=32, shuffle=True)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(COLUMNS * NUM_FEATURES, width)
        self.head = nn.Sequential(nn.GELU(), nn.Linear(width, NUM_CLASSES))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.read(series_BTF.flatten(1)))
        return scores


def collect(path: str) -> None:
    """Takes a page at a time, and its time for each."""
    with open(path, "rb", buffering=0) as pipe:
        while pipe.read(PAGE):
            time.sleep(0.06)


model = SeriesClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "metrics.pipe")
os.mkfifo(path)
threading.Thread(target=collect, args=(path,), daemon=True).start()
metrics = os.fdopen(os.open(path, os.O_WRONLY), "w", encoding="utf-8")
fcntl.fcntl(metrics, fcntl.F_SETPIPE_SZ, PAGE)

for _ in range(2):
    for number, (series_BTF, classes_B) in enumerate(loader):
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
        if patient.broken or number == 0:
            print(
                f"{loss.item():.4f} {model.read.weight.tolist()}"[: 2 * PAGE],
                file=metrics,
                flush=True,
            )
patient.discharge()
metrics.close()
folder.cleanup()
