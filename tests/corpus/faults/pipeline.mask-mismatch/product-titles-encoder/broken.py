import random

import torch
from torch import nn
from torch.utils.data import DataLoader

UNK, PAD = 0, 1
KINDS = {"shoe": ["boot", "sneaker", "sandal"], "lamp": ["bulb", "lantern", "torch"], "bag": ["purse", "tote", "satchel"]}
COMMON = ["new", "blue", "large", "set", "of", "two", "sale", "soft", "retro"]
VOCAB = {w: i + 2 for i, w in enumerate([w for ws in KINDS.values() for w in ws] + COMMON)}


def make_title(rng):
    label = rng.randrange(len(KINDS))
    words = rng.choices(COMMON, k=rng.randint(1, 9)) + [rng.choice(list(KINDS.values())[label])]
    rng.shuffle(words)
    return [VOCAB.get(w, UNK) for w in words], label


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([torch.tensor(r) for r, _ in rows], batch_first=True, padding_value=PAD)
    return ids, ids == UNK, torch.tensor([label for _, label in rows])


class TitleClassifier(nn.Module):
    def __init__(self, size, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(size, dim)
        self.attention = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, len(KINDS))

    def forward(self, ids, skip):
        x = self.embedding(ids)
        mixed, _ = self.attention(x, x, x, key_padding_mask=skip, need_weights=False)
        h = self.norm(x + mixed)
        keep = (~skip).unsqueeze(-1).float()
        return self.head((h * keep).sum(1) / keep.sum(1))


def main():
    torch.manual_seed(2)
    rng = random.Random(2)
    loader = DataLoader([make_title(rng) for _ in range(1400)], batch_size=28, shuffle=True, collate_fn=collate)
    model = TitleClassifier(len(VOCAB) + 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(2):
        for ids, skip, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(ids, skip), label)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
