# %% [markdown]
# # Review sentiment with a BiLSTM
# Export of the exploration notebook.

# %%
import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(7)
np.random.seed(7)
torch.manual_seed(7)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# %%
POSITIVE = "great lovely superb charming funny warm clever".split()
NEGATIVE = "dull awful weak boring messy cold silly".split()
NEUTRAL = "the film plot actor scene was and a music with ending of story camera it".split()
itos = ["<pad>", "<unk>", *sorted(POSITIVE + NEGATIVE + NEUTRAL + ["not"])]
stoi = {w: i for i, w in enumerate(itos)}


def make_review():
    words = random.choices(NEUTRAL, k=random.randint(6, 18))
    label = random.randint(0, 1)
    for _ in range(random.randint(2, 3)):
        at = random.randrange(len(words))
        if random.random() < 0.25:
            words[at:at] = ["not", random.choice(NEGATIVE if label else POSITIVE)]
        else:
            words[at:at] = [random.choice(POSITIVE if label else NEGATIVE)]
    return [stoi[w] for w in words], label


reviews = [make_review() for _ in range(1500)]
train_set, valid_set = reviews[:1200], reviews[1200:]
print("example:", " ".join(itos[i] for i in train_set[0][0]), "->", train_set[0][1])


# %%
def collate(batch):
    ids = [torch.tensor(r) for r, _ in batch]
    lengths = torch.tensor([len(r) for r in ids])
    labels = torch.tensor([y for _, y in batch], dtype=torch.float32)
    return pad_sequence(ids, batch_first=True), lengths, labels


train_dl = DataLoader(train_set, batch_size=40, shuffle=True, collate_fn=collate)
valid_dl = DataLoader(valid_set, batch_size=100, collate_fn=collate)


# %%
class BiLSTM(nn.Module):
    def __init__(self, vocab, emb=32, hidden=32, p=0.3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.dropout = nn.Dropout(p)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 1)

    def forward(self, ids, lengths):
        e = self.dropout(self.embedding(ids))
        packed = pack_padded_sequence(e, lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.fc(self.dropout(torch.cat([h[0], h[1]], dim=1))).squeeze(1)


model = BiLSTM(len(itos)).to(device)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


# %%
def validate():
    model.eval()
    loss_sum, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for ids, lengths, y in valid_dl:
            logits = model(ids.to(device), lengths)
            y = y.to(device)
            loss_sum += criterion(logits, y).item() * len(y)
            correct += ((logits > 0) == (y > 0.5)).sum().item()
            n += len(y)
    return loss_sum / n, correct / n


# %%
history = []
for epoch in range(3):
    model.train()
    epoch_loss = 0.0
    for ids, lengths, y in train_dl:
        optimizer.zero_grad()
        logits = model(ids.to(device), lengths)
        loss = criterion(logits, y.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
    val_loss, val_acc = validate()
    history.append((epoch_loss / len(train_dl), val_loss, val_acc))
    print(f"epoch {epoch}: train {history[-1][0]:.3f} valid {val_loss:.3f} acc {val_acc:.3f}")

# %%
print("best accuracy", max(h[2] for h in history))
