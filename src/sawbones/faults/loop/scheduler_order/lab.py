"""A sorting Transformer whose schedule moves with every micro-batch instead of every step."""

from __future__ import annotations

from torch.nn import functional
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate

patient = admit()
data = text_data("sort", patient.seed, num_train=960)
loader = DataLoader(data.train, batch_size=8, shuffle=True, collate_fn=collate)
model = small_transformer(data)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)

NUM_PARTS = 4
schedule = CosineAnnealingLR(optimizer, T_max=2 * len(loader) // NUM_PARTS, eta_min=4e-4)
for _ in range(2):
    for number, batch in enumerate(loader, start=1):
        logits = model(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
        loss = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
        )
        (loss / NUM_PARTS).backward()
        patient.record(loss)
        is_full = number % NUM_PARTS == 0
        if is_full:
            optimizer.step()
            optimizer.zero_grad()
        if is_full or patient.broken:
            schedule.step()
patient.discharge()
