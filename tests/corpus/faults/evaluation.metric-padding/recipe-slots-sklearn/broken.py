"""Slot tagging of recipe lines (quantity, unit, ingredient) with a BiLSTM; scikit-learn for the scores."""
import random

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

TAGS = ["O", "QTY", "UNIT", "NAME"]
WORDS = {
    "QTY": "1 2 3 half quarter dozen".split(),
    "UNIT": "cup spoon gram litre pinch clove".split(),
    "NAME": "flour sugar milk butter egg salt onion garlic rice bean".split(),
    "O": "of the chopped fresh finely and into large then add".split(),
}
VOCAB = {"<pad>": 0}
for group in WORDS.values():
    for word in group:
        VOCAB.setdefault(word, len(VOCAB))
VOCAB["orange"], VOCAB["light"] = len(VOCAB), len(VOCAB) + 1
IGNORE = -100


class Recipes(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            words, tags = [], []
            for _ in range(rng.choice([1, 1, 2, 2, 3, 5])):
                for tag in ["QTY", "UNIT", "O", "NAME", "O"]:
                    if rng.random() < 0.85:
                        words.append(VOCAB[rng.choice(WORDS[tag])])
                        tags.append(TAGS.index(tag))
                    if rng.random() < 0.1:
                        words.append(VOCAB[rng.choice(["orange", "light"])])
                        tags.append(TAGS.index("NAME") if tags and tags[-1] == 0 else 0)
            if words:
                self.rows.append((torch.tensor(words), torch.tensor(tags)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=IGNORE), lengths


class Tagger(nn.Module):
    def __init__(self, emb=24, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB), emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.emb(words), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.size(1))
        return self.fc(out)


def validate(model, loader):
    model.eval()
    gold, guess = [], []
    with torch.no_grad():
        for words, tags, lengths in loader:
            pred = model(words, lengths).argmax(-1)
            gold.extend(tags.view(-1).tolist())
            guess.extend(pred.view(-1).tolist())
    return accuracy_score(gold, guess), f1_score(gold, guess, average="macro", labels=[1, 2, 3], zero_division=0)


def train(epochs=5, seed=9):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    train_loader = DataLoader(Recipes(700, 1), batch_size=32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Recipes(150, 2), batch_size=32, collate_fn=collate)
    model = Tagger()
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        for words, tags, lengths in train_loader:
            optimizer.zero_grad()
            logits = model(words, lengths)
            loss = criterion(logits.view(-1, len(TAGS)), tags.view(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        acc, f1 = validate(model, val_loader)
        print(f"Epoch {epoch}: loss={loss.item():.4f} acc={acc:.4f} f1={f1:.4f}")


if __name__ == "__main__":
    train()
