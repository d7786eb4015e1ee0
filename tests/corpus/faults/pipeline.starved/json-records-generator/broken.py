"""Sessions stored as JSON lines with a long list of events each; a network on counts of events predicts a cancellation."""
import json
import random

import torch
from torch import nn

EVENTS = 40


def record(rng):
    cancels = rng.random() < 0.5
    events = []
    for _ in range(700):
        kind = rng.randrange(EVENTS)
        if cancels and rng.random() < 0.05:
            kind = rng.randrange(5)
        events.append({"kind": kind, "at": round(rng.random() * 3600, 3), "page": f"/p/{rng.randrange(999)}", "agent": "Mozilla/5.0"})
    return json.dumps({"events": events, "cancels": cancels})


def parse(line):
    content = json.loads(line)
    counts = [0] * EVENTS
    for event in sorted(content["events"], key=lambda e: e["at"]):
        counts[event["kind"]] += 1
    features = [(count - 17.5) / 4.2 for count in counts]
    return torch.tensor(features), torch.tensor(float(content["cancels"]))


def minibatches(lines, size, rng):
    rng.shuffle(lines)
    for start in range(0, len(lines), size):
        rows = [parse(line) for line in lines[start : start + size]]
        yield torch.stack([x for x, _ in rows]), torch.stack([y for _, y in rows])


rng = random.Random(4)
torch.manual_seed(4)
lines = [record(rng) for _ in range(480)]
model = nn.Sequential(nn.Linear(EVENTS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    right = seen = 0
    for x, y in minibatches(lines, 16, rng):
        logit = model(x)[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += ((logit > 0) == (y > 0.5)).sum().item()
        seen += len(y)
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right / seen:.3f}")
