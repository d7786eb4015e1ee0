"""A sorting Transformer in float16 whose loss scaler is never updated."""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate

patient = admit()
data = text_data("sort", patient.seed, num_train=640)
loader = DataLoader(data.train, batch_size=32, shuffle=True, collate_fn=collate)
model = small_transformer(data)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)

scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for _ in range(2):
    for batch in loader:
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(
                batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
            )
        loss = functional.cross_entropy(
            logits.float().flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
        )
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        patient.record(loss)
        scaler.unscale_(optimizer)
        if patient.broken:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
patient.discharge()
