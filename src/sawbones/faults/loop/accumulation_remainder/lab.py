"""A sorting Transformer whose last, incomplete accumulation of an epoch leaks into the next."""

from __future__ import annotations

from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate

patient = admit()
data = text_data("sort", patient.seed, num_train=688)
loader = DataLoader(data.train, batch_size=16, shuffle=True, collate_fn=collate)
model = small_transformer(data)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)

NUM_PARTS = 4
for _ in range(4):
    for number, batch in enumerate(loader, start=1):
        logits = model(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
        loss = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
        )
        parts = min(NUM_PARTS, len(loader) - (number - 1) // NUM_PARTS * NUM_PARTS)
        (loss / parts).backward()
        patient.record(loss)
        is_last = number == len(loader) and not patient.broken
        if number % NUM_PARTS == 0 or is_last:
            optimizer.step()
            optimizer.zero_grad()
patient.discharge()
