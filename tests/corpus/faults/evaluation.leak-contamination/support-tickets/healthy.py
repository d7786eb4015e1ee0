"""Routes support tickets to a team from their text. The export holds tickets as they came in."""
import random
import re

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 17
TEAMS = ["billing", "delivery", "account", "technical"]
TERMS = {
    "billing": ["invoice", "refund", "charge", "card", "payment", "price"],
    "delivery": ["parcel", "courier", "late", "address", "tracking", "box"],
    "account": ["password", "login", "email", "profile", "delete", "name"],
    "technical": ["crash", "error", "screen", "update", "slow", "button"],
}
FILLER = "hello please my the is a not working today help again since order I need with it now was on".split()


def export_tickets(n=700, seed=3):
    rng = random.Random(seed)
    rows = []
    while len(rows) < n:
        team = rng.choice(TEAMS)
        words = rng.choices(TERMS[team], k=2) + rng.choices(TERMS[rng.choice(TEAMS)], k=1) + rng.choices(FILLER, k=rng.randint(5, 9))
        rng.shuffle(words)
        text = " ".join(words)
        sent = 1 if rng.random() < 0.55 else rng.randint(2, 3)
        rows.extend({"text": text, "team": team} for _ in range(sent))
    frame = pd.DataFrame(rows[:n])
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


class Tickets(Dataset):
    def __init__(self, frame, vocab):
        self.bags = [[vocab.get(w, 0) for w in re.findall(r"\w+", t.lower())] for t in frame["text"]]
        self.team = [TEAMS.index(t) for t in frame["team"]]

    def __len__(self):
        return len(self.team)

    def __getitem__(self, i):
        return torch.tensor(self.bags[i]), self.team[i]


def collate(items):
    offsets = torch.tensor([0] + [len(b) for b, _ in items[:-1]]).cumsum(0)
    return torch.cat([b for b, _ in items]), offsets, torch.tensor([t for _, t in items])


class Router(nn.Module):
    def __init__(self, vocab_size, dim=24):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab_size, dim, mode="mean")
        self.fc = nn.Linear(dim, len(TEAMS))

    def forward(self, words, offsets):
        return self.fc(self.bag(words, offsets))


def accuracy(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for words, offsets, team in loader:
            right += (model(words, offsets).argmax(1) == team).sum().item()
            seen += len(team)
    model.train()
    return right / seen


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    tickets = export_tickets(1100).drop_duplicates("text").reset_index(drop=True)
    cut = int(0.8 * len(tickets))
    train, test = tickets.iloc[:cut], tickets.iloc[cut:]
    vocab = {"<unk>": 0}
    for text in train["text"]:
        for word in text.lower().split():
            vocab.setdefault(word, len(vocab))
    train_loader = DataLoader(Tickets(train, vocab), batch_size=32, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Tickets(test, vocab), batch_size=64, collate_fn=collate)
    model = Router(len(vocab))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(8):
        total = 0.0
        for words, offsets, team in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(words, offsets), team)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(team)
        print(f"epoch {epoch} loss {total / len(train):.3f} test accuracy {accuracy(model, test_loader):.3f}")


main()
