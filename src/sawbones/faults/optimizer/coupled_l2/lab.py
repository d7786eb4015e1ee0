"""A sorting Transformer under Adam, whose weight decay goes through the gradient's moments."""

from __future__ import annotations

from torch.nn import functional
from torch.optim import Adam, AdamW
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate
from sawbones.trainer.optimization import decay_groups

patient = admit()
data = text_data("sort", patient.seed)
loader = DataLoader(data.train, batch_size=32, shuffle=True, collate_fn=collate)
model = small_transformer(data)
matrices, rest = decay_groups(model)
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
optimizer = Adam(groups, lr=4e-3) if patient.broken else AdamW(groups, lr=4e-3)
patient.watch(model)

for _ in range(2):
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
patient.discharge()
