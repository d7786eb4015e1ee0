"""Route support tickets to a team: embedding, masked mean, MLP."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

STOPWORDS = set("the a an is my i it to of and in on for not with this".split())
TEAMS = {
    "billing": "invoice charged refund payment card receipt price".split(),
    "shipping": "parcel courier delivery late tracking address box".split(),
    "technical": "crash error screen update install freeze login".split(),
    "returns": "return broken exchange size wrong replacement label".split(),
}
SIGN_OFFS = ["Thanks!", "pls help", "urgent!!", "regards", ""]


@dataclass
class Settings:
    tickets: int = 900
    dim: int = 32
    hidden: int = 48
    batch_size: int = 30
    epochs: int = 4
    lr: float = 3e-3
    seed: int = 27
    teams: list = field(default_factory=lambda: list(TEAMS))


def export_tickets(settings: Settings) -> list[tuple[str, int]]:
    rng = random.Random(settings.seed)
    rows = []
    for _ in range(settings.tickets):
        team = rng.randrange(len(settings.teams))
        words = rng.choices(TEAMS[settings.teams[team]], k=rng.randint(4, 8))
        words += rng.choices(sorted(STOPWORDS), k=rng.randint(2, 8))
        if rng.random() < 0.4:
            words.append(rng.choice(TEAMS[rng.choice(settings.teams)]))
        rng.shuffle(words)
        body = " ".join(words) + " " + rng.choice(SIGN_OFFS)
        if rng.random() < 0.006:
            body = rng.choice(["...", "???", "it is not", "-"])
        rows.append((body, team))
    return rows


def tokenize(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z]+", text.lower()) if word not in STOPWORDS]


class TicketRouter(nn.Module):
    def __init__(self, vocab_size: int, settings: Settings):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, settings.dim, padding_idx=0)
        self.mlp = nn.Sequential(
            nn.Linear(settings.dim, settings.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(settings.hidden, len(settings.teams)),
        )

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        pooled = (self.embed(ids) * mask).sum(1) / mask.sum(1)
        return self.mlp(pooled)


class Routing:
    def __init__(self, settings: Settings):
        self.settings = settings
        random.seed(settings.seed)
        np.random.seed(settings.seed)
        torch.manual_seed(settings.seed)
        tickets = [(tokenize(body), team) for body, team in export_tickets(settings)]
        tickets = [(words, team) for words, team in tickets if words]
        cut = int(0.8 * len(tickets))
        train, valid = tickets[:cut], tickets[cut:]
        counts = Counter(word for words, _ in train for word in words)
        self.vocab = {word: i + 2 for i, (word, _) in enumerate(counts.most_common())}
        self.train_loader = DataLoader(train, settings.batch_size, shuffle=True, collate_fn=self.collate)
        self.valid_loader = DataLoader(valid, settings.batch_size, collate_fn=self.collate)
        self.model = TicketRouter(len(self.vocab) + 2, settings)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.lr)

    def collate(self, batch):
        ids = [torch.tensor([self.vocab.get(word, 1) for word in words], dtype=torch.long) for words, _ in batch]
        return pad_sequence(ids, batch_first=True), torch.tensor([team for _, team in batch])

    def train_one_epoch(self) -> float:
        self.model.train()
        losses = []
        for ids, team in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(ids), team)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def accuracy(self) -> float:
        self.model.eval()
        hits = sum((self.model(ids).argmax(-1) == team).sum().item() for ids, team in self.valid_loader)
        return hits / len(self.valid_loader.dataset)

    def run(self):
        for epoch in range(self.settings.epochs):
            print(f"epoch {epoch}: loss {self.train_one_epoch():.4f} accuracy {self.accuracy():.3f}")


if __name__ == "__main__":
    Routing(Settings()).run()
