"""A translation Transformer whose loss also counts the padding behind every sentence."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit
from sawbones.lab.texts import small_transformer, text_data
from sawbones.trainer.collation import Encoded, pad_right
from sawbones.trainer.tokenization import BOS_ID, EOS_ID, PAD_ID

patient = admit()
data = text_data("translation", patient.seed, num_train=800)


def make_batch(examples: Sequence[Encoded]) -> tuple[Tensor, Tensor]:
    source = pad_right([[*(e.source or ()), EOS_ID] for e in examples], PAD_ID)
    return source, pad_right([[BOS_ID, *e.target, EOS_ID] for e in examples], PAD_ID)


loader = DataLoader(data.train, batch_size=32, shuffle=True, collate_fn=make_batch)
model = small_transformer(data)
optimizer = AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(2):
    for source, target in loader:
        inputs, labels = target[:, :-1], target[:, 1:]
        logits = model(source, source != PAD_ID, inputs, inputs != PAD_ID)
        ignored = -100 if patient.broken else PAD_ID
        loss = functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=ignored
        )
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
