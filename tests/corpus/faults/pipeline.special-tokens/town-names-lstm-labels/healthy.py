import random

import torch
from torch import nn
from torch.utils.data import DataLoader

EOS = 0
LETTERS = "abcdefghijklmnopqrstuvwxyz"
HEADS = ["nor", "sut", "wes", "ast", "bur", "kil", "mar", "hol", "gre", "bri"]
TAILS = ["ton", "ham", "ford", "mere", "wick", "by", "gate", "ville"]


def encode(name):
    return [LETTERS.index(c) + 1 for c in name] + [EOS]


def collate(names):
    rows = [encode(n) for n in names]
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), EOS)
    labels = torch.full((len(rows), longest), -100)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        labels[i, : len(row)] = ids[i, : len(row)]
    return {"input_ids": ids, "labels": labels}


class NameModel(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(1, 1, width))
        self.embedding = nn.Embedding(len(LETTERS) + 1, width)
        self.lstm = nn.LSTM(width, 64, batch_first=True)
        self.decoder = nn.Linear(64, len(LETTERS) + 1)

    def forward(self, input_ids, labels=None):
        x = self.embedding(input_ids[:, :-1])
        x = torch.cat([self.start.expand(len(x), -1, -1), x], 1)
        logits = self.decoder(self.lstm(x)[0])
        if labels is None:
            return logits
        return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-100)


def main():
    random.seed(31)
    torch.manual_seed(31)
    names = [random.choice(HEADS) + random.choice(["", "a", "en", "ing"]) + random.choice(TAILS) for _ in range(1600)]
    loader = DataLoader(names, batch_size=32, shuffle=True, collate_fn=collate)
    model = NameModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=2 * len(loader))
    for epoch in range(2):
        for batch in loader:
            loss = model(**batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
