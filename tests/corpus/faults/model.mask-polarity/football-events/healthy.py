"""Predict how a football possession ends from its sequence of events (type + pitch zone)."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EVENTS = ["[PAD]", "[CLS]", "pass", "carry", "cross", "dribble", "press", "clear", "throw", "foul"]
OUTCOMES = ["shot", "turnover", "out"]
ZONES = 7
MAX_EVENTS = 20


class Possessions(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.samples = []
        for _ in range(n):
            length = int(rng.integers(8, 18))
            events = rng.integers(2, len(EVENTS), length)
            zones = rng.integers(1, ZONES, length)
            outcome = int(rng.integers(0, 3))
            typical = {0: (4, 5), 1: (6, 7), 2: (8, 9)}[outcome]
            for at in rng.choice(length, 4, replace=False):
                events[at] = rng.choice(typical)
            self.samples.append((np.r_[1, events], np.r_[0, zones], outcome))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        events, zones, outcome = self.samples[i]
        pad = MAX_EVENTS - len(events)
        return {
            "events": torch.from_numpy(np.pad(events, (0, pad))),
            "zones": torch.from_numpy(np.pad(zones, (0, pad))),
            "attention_mask": torch.from_numpy(np.r_[np.ones(len(events)), np.zeros(pad)]).long(),
            "outcome": outcome,
        }


class PossessionTransformer(nn.Module):
    def __init__(self, d_model=48, nhead=4, num_layers=2):
        super().__init__()
        self.event_emb = nn.Embedding(len(EVENTS), d_model, padding_idx=0)
        self.zone_emb = nn.Embedding(ZONES, d_model)
        self.pos_emb = nn.Embedding(MAX_EVENTS, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=96, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, norm=nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.classifier = nn.Linear(d_model, len(OUTCOMES))

    def forward(self, events, zones, attention_mask):
        positions = torch.arange(events.size(1), device=events.device)
        x = self.event_emb(events) + self.zone_emb(zones) + self.pos_emb(positions)
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        return self.classifier(x[:, 0])


def main():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    train_loader = DataLoader(Possessions(1200, 10), batch_size=40, shuffle=True)
    val_loader = DataLoader(Possessions(200, 11), batch_size=50)
    model = PossessionTransformer()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = 5 * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps, pct_start=0.15)
    loss_fn = nn.CrossEntropyLoss()

    for epoch in range(5):
        model.train()
        epoch_loss = 0.0
        for batch in train_loader:
            optimizer.zero_grad()
            logits = model(batch["events"], batch["zones"], batch["attention_mask"])
            loss = loss_fn(logits, batch["outcome"])
            loss.backward()
            optimizer.step()
            scheduler.step()
            epoch_loss += loss.item() * len(logits)

        model.eval()
        correct = 0
        with torch.no_grad():
            for batch in val_loader:
                logits = model(batch["events"], batch["zones"], batch["attention_mask"])
                correct += (logits.argmax(-1) == batch["outcome"]).sum().item()
        print(f"epoch {epoch + 1} loss {epoch_loss / 1200:.4f} val acc {correct / 200:.3f}")


if __name__ == "__main__":
    main()
