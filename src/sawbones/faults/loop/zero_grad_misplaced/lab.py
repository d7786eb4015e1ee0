"""A sorting Transformer whose gradients are cleared between the backward pass and the step."""

from __future__ import annotations

from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate

patient = admit()
data = text_data("sort", patient.seed)
loader = DataLoader(data.train, batch_size=32, shuffle=True, collate_fn=collate)
model = small_transformer(data)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(2):
    for batch in loader:
        logits = model(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
        loss = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
        )
        if not patient.broken:
            optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        if patient.broken:
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()
patient.discharge()
