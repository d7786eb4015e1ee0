"""A language model trained by SGD on the sum of its token losses, so that the step grows with the
batch.
"""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data, token_blocks

patient = admit()
data = text_data("lm", patient.seed, num_train=400)
blocks = token_blocks(data, width=25)
loader = DataLoader(TensorDataset(blocks), batch_size=32, shuffle=True, drop_last=True)
model = small_transformer(data, arch="decoder-only")
optimizer = SGD(model.parameters(), lr=0.2, momentum=0.9)
patient.watch(model)

for _ in range(4):
    for (rows,) in loader:
        inputs, targets = rows[:, :-1], rows[:, 1:]
        logits = model(None, None, inputs, torch.ones_like(inputs, dtype=torch.bool))
        reduction = "sum" if patient.broken else "mean"
        loss = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), reduction=reduction
        )
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
