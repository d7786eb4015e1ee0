import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import get_linear_schedule_with_warmup

seed = 13
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

VOCAB, PAD, N_STARS = 90, 0, 5
EPOCHS = 5
BATCH = 40


def make_reviews(n):
    reviews = []
    for _ in range(n):
        stars = random.randrange(N_STARS)
        length = random.randint(8, 24)
        words = [
            random.randint(51, VOCAB - 1) if random.random() < 0.6 else 1 + 10 * stars + random.randrange(10) for _ in range(length)
        ]
        reviews.append((torch.tensor(words), stars))
    return reviews


def collate(batch):
    words, stars = zip(*batch, strict=False)
    return pad_sequence(words, batch_first=True, padding_value=PAD), torch.tensor(stars)


class StarModel(nn.Module):
    def __init__(self, dim=40, heads=4, ff=80, depth=2, max_len=32):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, ff, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(depth)
        )
        self.ln = nn.LayerNorm(dim)
        self.cls = nn.Linear(dim, N_STARS)
        nn.init.normal_(self.pos.weight, std=0.1)

    def forward(self, words):
        pad = words == PAD
        x = self.tok(words) + self.pos(torch.arange(words.size(1)))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        pooled = (self.ln(x) * keep).sum(1) / keep.sum(1)
        return self.cls(pooled)


train_loader = DataLoader(make_reviews(800), batch_size=BATCH, shuffle=True, collate_fn=collate)
dev_loader = DataLoader(make_reviews(200), batch_size=BATCH, collate_fn=collate)

model = StarModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
num_training_steps = len(train_loader)
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=5, num_training_steps=num_training_steps)

for epoch in range(1, EPOCHS + 1):
    model.train()
    losses = []
    for words, stars in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words), stars)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

    model.eval()
    correct, dev_loss = 0, 0.0
    with torch.no_grad():
        for words, stars in dev_loader:
            logits = model(words)
            dev_loss += F.cross_entropy(logits, stars, reduction="sum").item()
            correct += (logits.argmax(1) == stars).sum().item()
    n = len(dev_loader.dataset)
    print(f"epoch {epoch}: train {np.mean(losses):.4f} dev {dev_loss / n:.4f} acc {correct / n:.3f}")
