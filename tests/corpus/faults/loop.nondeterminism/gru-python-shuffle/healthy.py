# Next-event prediction on clickstream-like sessions with a GRU. Results are compared across commits,
# so the run has to repeat exactly.
import random

import numpy as np
import torch
from torch import nn

SEED = 20
EVENTS = ["home", "search", "list", "item", "cart", "pay", "help", "login", "share", "review", "deal", "exit"]
NUM_EVENTS = len(EVENTS)
SESSION = 15


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def simulate_sessions(n):
    table = np.random.dirichlet(np.full(NUM_EVENTS, 0.25), size=NUM_EVENTS)
    sessions = np.zeros((n, SESSION), dtype=np.int64)
    sessions[:, 0] = np.random.randint(0, NUM_EVENTS, size=n)
    for t in range(1, SESSION):
        cumulative = table[sessions[:, t - 1]].cumsum(axis=1)
        draws = np.random.rand(n, 1) * cumulative[:, -1:]
        sessions[:, t] = (draws > cumulative).sum(axis=1)
    return torch.from_numpy(sessions)


class SessionModel(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.embed = nn.Embedding(NUM_EVENTS, 16)
        self.gru = nn.GRU(16, hidden, batch_first=True)
        self.next_event = nn.Linear(hidden, NUM_EVENTS)

    def forward(self, sessions):
        states, _ = self.gru(self.embed(sessions))
        return self.next_event(states)


def batches(order, size):
    random.shuffle(order)
    for i in range(0, len(order), size):
        yield order[i : i + size]


def nll(model, sessions):
    logits = model(sessions[:, :-1])
    return nn.functional.cross_entropy(logits.reshape(-1, NUM_EVENTS), sessions[:, 1:].reshape(-1))


set_seed(SEED)
sessions = simulate_sessions(880)
train, held_out = sessions[:800], sessions[800:]
model = SessionModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
order = list(range(len(train)))

for epoch in range(1, 5):
    model.train()
    losses = []
    for chosen in batches(order, 40):
        loss = nll(model, train[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        held_out_loss = nll(model, held_out).item()
    print(f"epoch {epoch}: train {sum(losses) / len(losses):.8f} held-out {held_out_loss:.8f}")

fingerprint = sum(p.detach().double().abs().sum().item() for p in model.parameters())
print(f"fingerprint (seed {SEED}): {fingerprint:.10f}")
