"""Application letters: the decision stands in the last sentence. A GRU over word ids."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

OPENING = "dear applicant we thank you for your letter and have read it with interest".split()
BODY = "the committee met in spring many people applied this year we looked at each with care".split()
YES = "we are glad to offer you the place".split()
NO = "we regret that the place went to another".split()
VOCABULARY = {word: i + 1 for i, word in enumerate(dict.fromkeys(OPENING + BODY + YES + NO))}
MAX_WORDS = 24


class Letters(Dataset):
    def __init__(self, count):
        self.rows = []
        for _ in range(count):
            accepted = random.randrange(2)
            middle = random.choices(BODY, k=random.randint(0, 24))
            end = YES if accepted else NO
            self.rows.append(([VOCABULARY[word] for word in OPENING[:8] + middle + end], accepted))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, accepted = self.rows[i]
        return torch.tensor(ids[:MAX_WORDS]), accepted


def collate(rows):
    lengths = torch.tensor([len(ids) for ids, _ in rows])
    padded = nn.utils.rnn.pad_sequence([ids for ids, _ in rows], batch_first=True)
    return padded, lengths, torch.tensor([accepted for _, accepted in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY) + 1, 32, padding_idx=0)
        self.gru = nn.GRU(32, 48, batch_first=True)
        self.verdict = nn.Linear(48, 2)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(ids), lengths, batch_first=True, enforce_sorted=False)
        return self.verdict(self.gru(packed)[1][0])


random.seed(52)
torch.manual_seed(52)
train = DataLoader(Letters(900), batch_size=30, shuffle=True, collate_fn=collate)
test = DataLoader(Letters(200), batch_size=100, collate_fn=collate)
reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
loss_function = nn.CrossEntropyLoss()
for epoch in range(3):
    reader.train()
    for ids, lengths, accepted in train:
        loss = loss_function(reader(ids, lengths), accepted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    reader.eval()
    hits = 0
    with torch.no_grad():
        for ids, lengths, accepted in test:
            hits += int((reader(ids, lengths).argmax(-1) == accepted).sum())
    print(f"epoch {epoch} loss {loss.item():.3f} test accuracy {hits / 200:.3f}")
