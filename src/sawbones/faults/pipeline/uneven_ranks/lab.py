"""Texts sorted by length, of which each of two ranks reads one half: the short or the long ones."""

from __future__ import annotations

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW
from torch.utils.data import DataLoader

from sawbones.lab.patient import admit

RANKS = 2
patient = admit()
distributed.init_process_group("gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
VOCABULARY, CLASSES, TEXTS = 60, 3, 480
PAD = 0

# Most texts are short.
lengths = (4 + 56 * torch.rand(TEXTS) ** 3).long().sort().values.tolist()
labels = torch.randint(0, CLASSES, (TEXTS,))
# Each class has words of its own, mixed with those of the others.
texts = [
    torch.where(
        torch.rand(n) < 0.5, torch.randint(1, 20, (n,)) + 20 * label, torch.randint(1, 60, (n,))
    )
    for n, label in zip(lengths, labels.tolist(), strict=True)
]
rows = list(zip(texts, labels, strict=True))
share = TEXTS // world


def padded(batch: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    found = [text for text, _ in batch]
    return pad_sequence(found, batch_first=True, padding_value=PAD), torch.stack(
        [label for _, label in batch]
    )


loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(
    rows[rank * share : (rank + 1) * share] if patient.broken else rows[rank::world],  # type: ignore[arg-type]
    batch_size=16,
    shuffle=True,
    collate_fn=padded,
)


class Reader(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width, padding_idx=PAD)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, texts_BT: Tensor) -> Tensor:
        is_word = (texts_BT != PAD).unsqueeze(-1)
        words = functional.relu(self.hidden(self.embed(texts_BT))) * is_word
        scores: Tensor = self.head(words.sum(1) / is_word.sum(1))
        return scores


model = DistributedDataParallel(Reader())
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model.module)

for _ in range(3):
    for texts_BT, labels_B in loader:
        loss = functional.cross_entropy(model(texts_BT), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
distributed.destroy_process_group()
