"""Reverse a word: nn.Transformer, one table of positions for both sides, teacher forcing."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LETTERS, BOS, LENGTH = 12, 12, 7


class Words(Dataset):
    def __init__(self, count, seed):
        self.words = torch.randint(0, LETTERS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        word = self.words[i]
        return word, torch.cat([torch.tensor([BOS]), word.flip(0)])


class Reverser(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.letters = nn.Embedding(LETTERS + 1, width)
        self.places = nn.Parameter(torch.randn(LENGTH + 1, width) * 0.5)
        self.body = nn.Transformer(width, 4, 1, 1, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, LETTERS)

    def embed(self, ids):
        return self.letters(ids) + self.places[: ids.size(1)]

    def forward(self, word, prefix):
        causal = nn.Transformer.generate_square_subsequent_mask(prefix.size(1))
        return self.head(self.body(self.embed(word), self.embed(prefix), tgt_mask=causal, tgt_is_causal=True))


def main():
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    loader = DataLoader(Words(3200, 1), batch_size=64, shuffle=True)
    model = Reverser()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        for i, (word, answer) in enumerate(loader):
            logits = model(word, answer[:, :-1])
            loss = criterion(logits.reshape(-1, LETTERS), answer[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 10 == 0:
                print(f"epoch {epoch} batch {i} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
