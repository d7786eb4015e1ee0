import random

import torch
from torch import nn
from torch.utils.data import DataLoader

PAD = 0
MAX_TOKENS = 96
MOODS = [["glad", "happy", "joy", "smile"], ["sad", "cry", "gloom", "tears"]]
REST = ["today", "i", "am", "so", "very", "we", "all", "this", "morning", "again", "much"]
WORDS = {w: i + 1 for i, w in enumerate(MOODS[0] + MOODS[1] + REST)}


def tweet():
    mood = random.randint(0, 1)
    words = random.choices(REST, k=random.randint(2, 9)) + random.choices(MOODS[mood], k=2)
    random.shuffle(words)
    return [WORDS[w] for w in words], mood


def collate(tweets):
    width = MAX_TOKENS
    ids = torch.tensor([(row + [PAD] * width)[:width] for row, _ in tweets])
    return ids, torch.tensor([mood for _, mood in tweets])


class MoodModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS) + 1, dim, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        hidden = ids == PAD
        h = self.encoder(self.embed(ids), src_key_padding_mask=hidden)
        h = h.masked_fill(hidden.unsqueeze(-1), 0.0)
        return self.head(h.sum(1) / (~hidden).sum(1, keepdim=True))


random.seed(24)
torch.manual_seed(24)
loader = DataLoader([tweet() for _ in range(960)], batch_size=16, shuffle=True, collate_fn=collate)
model = MoodModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for i, (ids, mood) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(ids), mood)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(f"batch {i} loss {loss.item():.4f}")
