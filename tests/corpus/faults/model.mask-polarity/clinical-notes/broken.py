"""Assigns a department to short clinical notes with a small transformer encoder."""

import argparse
import math
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD = 0
VOCAB = 120
DEPARTMENTS = ["cardiology", "neurology", "surgery", "pediatrics"]


class NotesDataset(Dataset):
    """Every department has its own jargon; about a third of the words of a note come from it."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.notes, self.labels = [], []
        for _ in range(size):
            label = int(rng.integers(len(DEPARTMENTS)))
            length = int(rng.integers(5, 25))
            words = rng.integers(41, VOCAB, size=length)
            jargon = rng.random(length) < 0.3
            jargon[int(rng.integers(length))] = True
            words[jargon] = 1 + label * 10 + rng.integers(0, 10, size=int(jargon.sum()))
            self.notes.append(torch.as_tensor(words, dtype=torch.long))
            self.labels.append(label)

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, index):
        return self.notes[index], self.labels[index]


def collate(items):
    notes, labels = zip(*items, strict=False)
    return pad_sequence(notes, batch_first=True, padding_value=PAD), torch.tensor(labels)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class NoteClassifier(nn.Module):
    def __init__(self, d_model=32, nhead=4, num_layers=2):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(VOCAB, d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.position = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.classifier = nn.Linear(d_model, len(DEPARTMENTS))

    def forward(self, ids):
        keep = ids != PAD
        x = self.position(self.embedding(ids) * math.sqrt(self.d_model))
        x = self.encoder(x, src_key_padding_mask=keep)
        weights = keep.unsqueeze(-1).float()
        pooled = (x * weights).sum(1) / weights.sum(1)
        return self.classifier(pooled)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits, total = 0, 0
    for ids, labels in loader:
        hits += (model(ids).argmax(-1) == labels).sum().item()
        total += labels.numel()
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train_loader = DataLoader(NotesDataset(800, 1), batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(NotesDataset(200, 2), batch_size=64, collate_fn=collate)
    model = NoteClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for ids, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(ids), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch} train {running / len(train_loader):.3f} val acc {accuracy(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
