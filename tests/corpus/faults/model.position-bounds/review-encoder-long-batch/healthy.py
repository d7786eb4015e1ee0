"""Rate reviews: encoder with a learned position table, batches padded to their longest review."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(6)
torch.manual_seed(6)

WORDS, PAD = 60, 0
MAX_POSITIONS = 64


def write_reviews(count):
    reviews = []
    for i in range(count):
        # most reviews are short, a few run long
        length = random.randint(40, 46) if random.random() < 0.01 else random.randint(20, 32)
        mood = random.choice([-1, 1])
        words = [random.randint(1, 29) if random.random() < 0.5 - 0.25 * mood else random.randint(30, 59) for _ in range(length)]
        reviews.append((torch.tensor(words), 1 if mood > 0 else 0))
    return reviews


def collate(samples):
    words, stars = zip(*samples)
    return pad_sequence(words, batch_first=True, padding_value=PAD), torch.tensor(stars)


class ReviewEncoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.word = nn.Embedding(WORDS, dim, padding_idx=PAD)
        self.position = nn.Embedding(MAX_POSITIONS, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.stars = nn.Linear(dim, 2)

    def forward(self, words):
        pad = words.eq(PAD)
        place = torch.arange(words.size(1)).unsqueeze(0)
        x = self.word(words) + self.position(place)
        x = self.encoder(x, src_key_padding_mask=pad)
        x = x.masked_fill(pad.unsqueeze(-1), 0.0).sum(1) / (~pad).sum(1, keepdim=True)
        return self.stars(x)


reviews = write_reviews(1100)
loader = DataLoader(reviews[:1000], batch_size=20, shuffle=True, collate_fn=collate)
dev_words, dev_stars = collate([r for r in reviews[1000:] if len(r[0]) <= 32])

model = ReviewEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_function = nn.CrossEntropyLoss()

for epoch in range(2):
    model.train()
    for i, (words, stars) in enumerate(loader):
        optimizer.zero_grad()
        loss = loss_function(model(words), stars)
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"epoch {epoch} batch {i:2d} longest {words.size(1)} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print("dev accuracy", (model(dev_words).argmax(1) == dev_stars).float().mean().item())
