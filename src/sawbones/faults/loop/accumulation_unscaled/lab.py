"""A sorting Transformer that adds up four micro-batches without dividing by four."""

from __future__ import annotations

from torch.nn import functional
from torch.optim import SGD
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import IGNORE_INDEX, collate

patient = admit()
data = text_data("sort", patient.seed, num_train=960)
loader = DataLoader(data.train, batch_size=8, shuffle=True, collate_fn=collate)
model = small_transformer(data)
optimizer = SGD(model.parameters(), lr=0.2, momentum=0.9)
patient.watch(model)

NUM_PARTS = 4
for _ in range(2):
    for number, batch in enumerate(loader, start=1):
        logits = model(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
        loss = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels_BT.flatten(), ignore_index=IGNORE_INDEX
        )
        part = loss if patient.broken else loss / NUM_PARTS
        part.backward()
        patient.record(loss)
        if number % NUM_PARTS == 0:
            optimizer.step()
            optimizer.zero_grad()
patient.discharge()
