"""Tags the words of ingredient lines (quantity, unit, name, comment) with a small transformer."""
import math
import random

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader

TAGS = {"PAD": -100, "QTY": 0, "UNIT": 1, "NAME": 2, "NOTE": 3}
QTY = ["1", "2", "3", "half", "a", "some"]
UNIT = ["cup", "spoon", "gram", "pinch", "can"]
NAME = ["flour", "sugar", "rice", "oil", "salt", "bean", "orange", "rose", "water", "fresh"]
NOTE = ["chopped", "fresh", "ground", "warm", "orange", "to", "taste"]


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def random_line():
    words, tags = [], []

    def put(pool, tag, low, high):
        for _ in range(random.randint(low, high)):
            words.append(random.choice(pool))
            tags.append(TAGS[tag])

    put(QTY, "QTY", 0, 1)
    put(UNIT, "UNIT", 0, 1)
    put(NAME, "NAME", 1, 3)
    if random.random() < 0.6:
        words.append(",")
        tags.append(TAGS["NOTE"])
        put(NOTE, "NOTE", 1, 3)
    return words, tags


VOCAB = {w: i + 1 for i, w in enumerate(sorted(set(QTY + UNIT + NAME + NOTE + [","])))}


def collate(lines):
    longest = max(len(words) for words, _ in lines)
    ids = torch.zeros(len(lines), longest, dtype=torch.long)
    tags = torch.full((len(lines), longest), TAGS["PAD"])
    for row, (words, labels) in enumerate(lines):
        ids[row, : len(words)] = torch.tensor([VOCAB[w] for w in words])
        tags[row, : len(labels)] = torch.tensor(labels)
    return ids, tags


class Tagger(nn.Module):
    def __init__(self, d_model=48, n_heads=4, n_layers=2, max_len=32):
        super().__init__()
        self.d_model = d_model
        self.embed = nn.Embedding(len(VOCAB) + 1, d_model, padding_idx=0)
        position = torch.arange(max_len).unsqueeze(1)
        rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        self.register_buffer("table", table)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, 96, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.proj = nn.Linear(d_model, 4)

    def forward(self, ids):
        x = self.embed(ids) + self.table[: ids.size(1)]
        return self.proj(self.encoder(x, src_key_padding_mask=ids == 0))


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, hits, seen = 0.0, 0, 0
    for ids, tags in loader:
        with torch.set_grad_enabled(optimizer is not None):
            logits = model(ids)
            loss = criterion(logits.reshape(-1, 4), tags.reshape(-1))
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        keep = tags != TAGS["PAD"]
        total += loss.item()
        hits += (logits.argmax(-1) == tags)[keep].sum().item()
        seen += keep.sum().item()
    return total / len(loader), hits / seen


def main():
    seed_everything(3)
    train = [random_line() for _ in range(1280)]
    valid = [random_line() for _ in range(256)]
    train_loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(valid, batch_size=64, collate_fn=collate)
    model = Tagger()
    epochs = 3
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-1, weight_decay=0.0)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    criterion = nn.CrossEntropyLoss(ignore_index=TAGS["PAD"])
    for epoch in range(epochs):
        loss, acc = run_epoch(model, train_loader, criterion, optimizer)
        val_loss, val_acc = run_epoch(model, valid_loader, criterion)
        scheduler.step()
        print(f"epoch {epoch}  train {loss:.3f}/{acc:.3f}  valid {val_loss:.3f}/{val_acc:.3f}")


if __name__ == "__main__":
    main()
