"""Tag drugs, doses and symptoms in clinical notes with a BiLSTM; 'O' dominates, so the loss is class-weighted."""
import random
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

SEED = 71
TAGS = ["O", "DRUG", "DOSE", "SYMPTOM"]
IGNORE = -100
WORDS = {"O": list(range(1, 120)), "DRUG": list(range(100, 130)), "DOSE": list(range(130, 145)), "SYMPTOM": list(range(140, 170))}
VOCAB = 170


def note(rng):
    tokens, tags = [], []
    for _ in range(rng.randint(14, 26)):
        tokens.append(rng.choice(WORDS["O"]))
        tags.append(0)
        u = rng.random()
        if u < 0.10:
            tokens.append(rng.choice(WORDS["DRUG"]))
            tags.append(1)
            if rng.random() < 0.6:
                tokens.append(rng.choice(WORDS["DOSE"]))
                tags.append(2)
        elif u < 0.16:
            tokens.append(rng.choice(WORDS["SYMPTOM"]))
            tags.append(3)
    return tokens, tags


def collate(batch):
    batch = sorted(batch, key=lambda item: -len(item[0]))
    lengths = torch.tensor([len(t) for t, _ in batch])
    tokens = pad_sequence([torch.tensor(t) for t, _ in batch], batch_first=True, padding_value=0)
    tags = pad_sequence([torch.tensor(g) for _, g in batch], batch_first=True, padding_value=IGNORE)
    return tokens, lengths, tags


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=40):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.classifier(hidden)


def class_weights(notes):
    counts = Counter(tag for _, tags in notes for tag in tags)
    freq = torch.tensor([counts[i] for i in range(len(TAGS))], dtype=torch.float)
    weights = freq.sum() / freq
    return weights / weights.mean()


def recall_per_tag(model, loader):
    hit, total = torch.zeros(len(TAGS)), torch.zeros(len(TAGS))
    model.eval()
    with torch.no_grad():
        for tokens, lengths, tags in loader:
            pred = model(tokens, lengths).argmax(-1)
            for k in range(len(TAGS)):
                where = tags == k
                hit[k] += (pred[where] == k).sum()
                total[k] += where.sum()
    return (hit / total.clamp(min=1)).tolist()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    train_notes = [note(rng) for _ in range(480)]
    dev_notes = [note(rng) for _ in range(80)]
    train_loader = DataLoader(train_notes, batch_size=24, shuffle=True, collate_fn=collate)
    dev_loader = DataLoader(dev_notes, batch_size=40, collate_fn=collate)
    model = Tagger()
    criterion = nn.CrossEntropyLoss(weight=class_weights(train_notes), ignore_index=IGNORE)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        model.train()
        losses = []
        for tokens, lengths, tags in train_loader:
            logits = model(tokens, lengths)
            loss = criterion(logits.view(-1, len(TAGS)), tags.view(-1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            losses.append(loss.item())
        recalls = " ".join(f"{t}={r:.2f}" for t, r in zip(TAGS, recall_per_tag(model, dev_loader)))
        print(f"epoch {epoch} loss {np.mean(losses):.4f} dev recall {recalls}")


if __name__ == "__main__":
    main()
