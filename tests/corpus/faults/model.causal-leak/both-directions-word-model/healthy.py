import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

random.seed(6)
torch.manual_seed(6)
SUBJECTS, VERBS, OBJECTS = range(1, 8), range(8, 14), range(14, 24)


class Sentences(Dataset):
    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            row = []
            for _ in range(4):
                s = random.choice(SUBJECTS)
                v = VERBS[(s + random.randint(0, 1)) % 6]
                row += [s, v, OBJECTS[(v + random.randint(0, 2)) % 10], 24]
            self.rows.append(torch.tensor(row))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i][:-1], self.rows[i][1:]


class WordModel(nn.Module):
    def __init__(self, bidirectional):
        super().__init__()
        self.emb = nn.Embedding(25, 24)
        self.rnn = nn.LSTM(24, 32, batch_first=True, bidirectional=bidirectional)
        self.fc = nn.Linear(64 if bidirectional else 32, 25)

    def forward(self, x):
        return self.fc(self.rnn(self.emb(x))[0])


model = WordModel(bidirectional=False)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in DataLoader(Sentences(640), batch_size=32, shuffle=True):
        opt.zero_grad()
        loss = ce(model(x).permute(0, 2, 1), y)
        loss.backward()
        opt.step()
    print("perplexity", loss.exp().item())
