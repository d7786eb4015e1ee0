"""A sorting Transformer that stays in eval mode after its first validation, so dropout is off."""

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
held_out = DataLoader(data.val, batch_size=96, collate_fn=collate)
model = small_transformer(data, dropout=0.1)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)


def validation_loss() -> float:
    model.eval()
    with torch.no_grad():
        batch = next(iter(held_out))
        logits = model(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
        return float(
            functional.cross_entropy(
                logits.flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
            )
        )


for number in range(4):
    if number == 0 or not patient.broken:
        model.train()
    for batch in loader:
        logits = model(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
        loss = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
        )
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    print(f"epoch {number}: held-out loss {validation_loss():.3f}")
patient.discharge()
