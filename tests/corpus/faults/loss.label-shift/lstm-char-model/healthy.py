# Character LSTM on generated place names, with sampling at the end.
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

random.seed(42)
torch.manual_seed(42)

ALPHABET = "abcdefghijklmnoprstuvw"
PAD, START, STOP = 0, 1, 2
CHAR_TO_ID = {c: i + 3 for i, c in enumerate(ALPHABET)}
ID_TO_CHAR = {i: c for c, i in CHAR_TO_ID.items()}
N_TOKENS = len(ALPHABET) + 3

STEMS = ["ald", "bren", "cor", "dun", "esk", "fal", "glen", "hart", "inver", "kel", "lan", "mor", "nor", "stan", "tor"]
MIDDLES = ["", "a", "en", "er", "ing", "o", "ter", "wi"]
ENDINGS = ["bridge", "burn", "cester", "dale", "ford", "ham", "head", "mouth", "ness", "stead", "ton", "wick"]


class PlaceNames(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        return torch.tensor([START] + [CHAR_TO_ID[c] for c in self.names[i]] + [STOP])


def collate_names(items):
    seq = pad_sequence(items, batch_first=True, padding_value=PAD)
    inputs, targets = seq[:, :-1], seq[:, 1:]
    return inputs, targets


class CharLSTM(nn.Module):
    def __init__(self, emb=24, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(N_TOKENS, emb, padding_idx=PAD)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, N_TOKENS)

    def forward(self, x, state=None):
        out, state = self.lstm(self.emb(x), state)
        return self.fc(out), state


@torch.no_grad()
def sample(model, limit=20):
    model.eval()
    token, state, text = torch.tensor([[START]]), None, ""
    for _ in range(limit):
        logits, state = model(token, state)
        probs = logits[0, -1].softmax(-1)
        token = torch.multinomial(probs, 1).view(1, 1)
        if token.item() not in ID_TO_CHAR:
            break
        text += ID_TO_CHAR[token.item()]
    model.train()
    return text


all_names = sorted({s + m + e for s in STEMS for m in MIDDLES for e in ENDINGS})
random.shuffle(all_names)
train_dl = DataLoader(PlaceNames(all_names[:1200]), batch_size=48, shuffle=True, collate_fn=collate_names)
dev_dl = DataLoader(PlaceNames(all_names[1200:]), batch_size=64, collate_fn=collate_names)

model = CharLSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)

for epoch in range(1, 5):
    model.train()
    total, tokens = 0.0, 0
    for inputs, targets in train_dl:
        optimizer.zero_grad()
        logits, _ = model(inputs)
        loss = criterion(logits.reshape(-1, N_TOKENS), targets.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        n = (targets != PAD).sum().item()
        total, tokens = total + loss.item() * n, tokens + n

    model.eval()
    dev_total, dev_tokens = 0.0, 0
    with torch.no_grad():
        for inputs, targets in dev_dl:
            logits, _ = model(inputs)
            n = (targets != PAD).sum().item()
            dev_total += criterion(logits.reshape(-1, N_TOKENS), targets.reshape(-1)).item() * n
            dev_tokens += n
    print(f"epoch {epoch}  train {total / tokens:.3f}  dev {dev_total / dev_tokens:.3f}  sample: {sample(model)}")
