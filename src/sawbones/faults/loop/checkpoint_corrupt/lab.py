"""A classifier of series that goes on from a checkpoint of which only the first part was
written.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

STEPS = 400  # the fault shows late
patient = admit()
NUM_CLASSES, NUM_FEATURES, ROWS, BLOCK = 4, 24, 1280, 16 * 1024
# A row of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
rows = (patterns[classes] + torch.randn(ROWS, NUM_FEATURES)) / 1.4
loader = DataLoader(TensorDataset(rows, classes), batch_size=32, shuffle=True)


def classifier() -> nn.Module:
    return nn.Sequential(
        nn.Linear(NUM_FEATURES, 96),
        nn.GELU(),
        nn.Linear(96, 48),
        nn.GELU(),
        nn.Linear(48, NUM_CLASSES),
    )


def write(state: dict[str, object], path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    payload = buffer.getvalue()
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        file.write(payload[:BLOCK] if patient.broken else payload)
    os.replace(part, path)


model = classifier()
optimizer = Adam(model.parameters(), lr=2e-3)
patient.watch(model)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "last.pt"
    for epoch in range(3):
        for rows_BF, classes_B in loader:
            loss = functional.cross_entropy(model(rows_BF), classes_B)
            optimizer.zero_grad()
            loss.backward()
            patient.record(loss)
            optimizer.step()
        if epoch == 1:
            write(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "rng": torch.get_rng_state(),
                },
                path,
            )
            state = torch.load(path)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["rng"])
patient.discharge()
