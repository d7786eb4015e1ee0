"""Machine-state recognition from event streams, GRU; stops when the validation loss no longer falls."""
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Options:
    events: int = 30
    length: int = 12
    states: int = 4
    epochs: int = 25
    batch: int = 32
    lr: float = 5e-3
    patience: int = 1
    seed: int = 456


def streams(n, o):
    """Each state prefers every fourth event, but most events can happen in any state."""
    state = np.random.randint(o.states, size=n)
    typical = (np.random.randint(o.events // o.states, size=(n, o.length)) * o.states + state[:, None]) % o.events
    other = np.random.randint(o.events, size=(n, o.length))
    events = np.where(np.random.rand(n, o.length) < 0.35, typical, other)
    return TensorDataset(torch.from_numpy(events), torch.from_numpy(state))


class StateNet(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.embed = nn.Embedding(o.events, 24)
        self.gru = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, o.states)

    def forward(self, events):
        states, _ = self.gru(self.embed(events))
        return self.out(states.mean(dim=1))


def main(o):
    random.seed(o.seed)
    np.random.seed(o.seed)
    torch.manual_seed(o.seed)
    loader = DataLoader(streams(320, o), batch_size=o.batch, shuffle=True)
    valid_events, valid_labels = streams(400, o).tensors
    model = StateNet(o)
    optimizer = torch.optim.Adam(model.parameters(), lr=o.lr)
    criterion = nn.CrossEntropyLoss()
    best, since = float("inf"), 0
    for epoch in range(o.epochs):
        model.train()
        losses = []
        for events, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(events), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            valid = criterion(model(valid_events), valid_labels).item()
        print(f"epoch {epoch} train {np.mean(losses):.4f} valid {valid:.4f}")
        if valid < best:
            best, since = valid, 0
        else:
            since += 1
            if since >= o.patience:
                print(f"stopped, best validation loss {best:.4f}")
                break


if __name__ == "__main__":
    main(Options())
