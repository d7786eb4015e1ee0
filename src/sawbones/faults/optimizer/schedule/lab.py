"""A sorting Transformer whose warm-up is longer than the whole run."""

from __future__ import annotations

from torch.nn import functional
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate

STEPS = 400  # the fault shows late
patient = admit()
data = text_data("sort", patient.seed)
loader = DataLoader(data.train, batch_size=32, shuffle=True, collate_fn=collate)
model = small_transformer(data)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
warm_up = 20_000 if patient.broken else 8
schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warm_up))
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
        schedule.step()
patient.discharge()
