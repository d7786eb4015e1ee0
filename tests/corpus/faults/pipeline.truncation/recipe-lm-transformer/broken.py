import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2
MAX_LEN = 20
STEPS = {"boil": ["pasta", "rice", "eggs"], "chop": ["onion", "leek", "herbs"], "fry": ["onion", "tofu", "eggs"], "bake": ["bread", "tofu"]}
WORDS = sorted({*STEPS, *(w for ws in STEPS.values() for w in ws), "then", "and", "serve"})
VOCAB = {w: i + 3 for i, w in enumerate(WORDS)}


def write_recipe(rng):
    out = []
    for k in range(rng.choice([1, 2, 3, 4, 5, 6])):
        verb = rng.choice(list(STEPS))
        out += ([] if k == 0 else ["then"]) + [verb, rng.choice(STEPS[verb])]
    return out + ["and", "serve"]


class Recipes(Dataset):
    def __init__(self, n, rng):
        self.rows = [self.encode(write_recipe(rng)) for _ in range(n)]

    def encode(self, words):
        ids = [BOS] + [VOCAB[w] for w in words] + [EOS]
        return ids[: MAX_LEN - 4]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return torch.tensor(row + [PAD] * (MAX_LEN - len(row)))


class Decoder(nn.Module):
    def __init__(self, size, width=48, heads=4):
        super().__init__()
        self.token = nn.Embedding(size, width, padding_idx=PAD)
        self.place = nn.Embedding(MAX_LEN, width)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, heads, 96, dropout=0.0, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
        )
        self.head = nn.Linear(width, size)

    def forward(self, ids):
        time = ids.shape[1]
        future = torch.triu(torch.ones(time, time, dtype=torch.bool), 1)
        h = self.token(ids) + self.place(torch.arange(time))
        return self.head(self.layers(h, mask=future, src_key_padding_mask=ids == PAD))


if __name__ == "__main__":
    torch.manual_seed(55)
    rng = random.Random(55)
    loader = DataLoader(Recipes(1400, rng), batch_size=28, shuffle=True)
    model = Decoder(len(VOCAB) + 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(2):
        for i, ids in enumerate(loader):
            logits = model(ids[:, :-1])
            loss = criterion(logits.transpose(1, 2), ids[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 20 == 0:
                print(f"epoch {epoch} batch {i} loss {loss.item():.3f}")
