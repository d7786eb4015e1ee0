"""A reader of texts that pads every batch to its longest: one text is so long that its attention
scores fit no memory.

Scores of all pairs of that batch would take 160 TB. That is more than a process can address,
whatever the machine has.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.optim import Adam
from torch.utils.data import DataLoader, Dataset

from sawbones.lab.patient import admit

patient = admit()
NUM_WORDS, NUM_CLASSES, LONGEST, FAR_TOO_LONG = 60, 3, 32, 400_000


def text(number: int) -> tuple[Tensor, int]:
    """A third of the words comes from the words of the text's class."""
    label = int(torch.randint(0, NUM_CLASSES, ()))
    size = FAR_TOO_LONG if number == 700 else int(torch.randint(12, LONGEST, ()))
    words = torch.randint(1, NUM_WORDS, (size,))
    return torch.where(torch.rand(size) < 0.33, 1 + 8 * label + words % 8, words), label


class TextList(Dataset[tuple[Tensor, int]]):
    def __init__(self, rows: list[tuple[Tensor, int]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.rows[index]


def collate(batch: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    texts = [words if patient.broken else words[:LONGEST] for words, _ in batch]
    return pad_sequence(texts, batch_first=True), torch.tensor([label for _, label in batch])


class Reader(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_WORDS, width, padding_idx=0)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.score = nn.Linear(width, 1, bias=False)
        self.head = nn.Linear(width, NUM_CLASSES)

    def forward(self, words_BT: Tensor) -> Tensor:
        is_word_BT = words_BT != 0
        read = self.words(words_BT)
        pairs = self.query(read)[:, :, None] + self.key(read)[:, None, :]
        scores = self.score(torch.tanh(pairs)).squeeze(-1)
        mixed = read + scores.masked_fill(~is_word_BT[:, None], float("-inf")).softmax(
            -1
        ) @ self.value(read)
        mean: Tensor = (mixed * is_word_BT[..., None]).sum(1) / is_word_BT.sum(1, keepdim=True)
        scores_BC: Tensor = self.head(mean)
        return scores_BC


texts = TextList([text(i) for i in range(960)])
loader = DataLoader(texts, batch_size=16, shuffle=True, collate_fn=collate)
model = Reader()
optimizer = Adam(model.parameters(), lr=4e-3)
patient.watch(model)

for _ in range(2):
    for words_BT, labels_B in loader:
        loss = functional.cross_entropy(model(words_BT), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
