"""Match questions to answers: bag-of-words towers compared by cosine."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

np.random.seed(23)
torch.manual_seed(23)
TOPICS, WORDS = 10, 120


def pairs(n, rng):
    topic = rng.integers(0, TOPICS, n)

    def bags():
        bag = np.zeros((n, WORDS), dtype="float32")
        for i, k in enumerate(topic):
            for _ in range(rng.poisson(6)):
                bag[i, k * 12 + rng.integers(12) if rng.random() < 0.8 else rng.integers(WORDS)] += 1
        return torch.from_numpy(bag)

    return bags(), bags(), torch.from_numpy(topic)


class Tower(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.word = nn.Linear(WORDS, 48, bias=False)
        self.out = nn.Linear(48, dim, bias=False)

    def forward(self, bag):
        z = self.out(torch.relu(self.word(bag)))
        return z / z.norm(dim=-1, keepdim=True)


rng = np.random.default_rng(23)
question, answer, topic = pairs(1500, rng)
ask, reply = Tower(), Tower()
log_temp = nn.Parameter(torch.tensor(2.0))
optimizer = torch.optim.Adam([*ask.parameters(), *reply.parameters(), log_temp], lr=3e-3)
for step in range(90):
    i = torch.from_numpy(rng.choice(1300, 40, replace=False))
    sim = ask(question[i]) @ reply(answer[i]).T * log_temp.exp().clamp(max=50)
    same = (topic[i][:, None] == topic[i][None]).float()
    loss = -(F.log_softmax(sim, 1) * same / same.sum(1, keepdim=True)).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        with torch.no_grad():
            sim = ask(question[1300:]) @ reply(answer[1300:]).T
            hit = (topic[1300:][sim.argmax(1)] == topic[1300:]).float().mean()
        print(f"{step + 1}: loss {loss.item():.3f} retrieval {hit:.3f}")
