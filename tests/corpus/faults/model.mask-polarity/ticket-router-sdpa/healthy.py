import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(3)
torch.manual_seed(3)
TOPICS, VOCAB, WIDTH, HEADS, LONGEST = 4, 60, 32, 4, 16


def ticket():
    topic = random.randrange(TOPICS)
    n = random.randint(5, LONGEST)
    words = [random.randint(20, VOCAB - 1) for _ in range(n)]
    for spot in random.sample(range(n), 2):
        words[spot] = 1 + topic * 4 + random.randrange(4)
    return words + [0] * (LONGEST - n), topic


rows = [ticket() for _ in range(960)]
ids, topics = torch.tensor([r[0] for r in rows]), torch.tensor([r[1] for r in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, WIDTH)
        self.pos = nn.Embedding(LONGEST, WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH))
        self.head = nn.Linear(WIDTH, TOPICS)

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def forward(self, tokens):
        x = self.emb(tokens) + self.pos.weight
        visible = tokens.ne(0)[:, None, None, :]
        h = self.n1(x)
        a = F.scaled_dot_product_attention(self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h)), attn_mask=visible)
        x = x + self.o(a.transpose(1, 2).flatten(2))
        x = x + self.mlp(self.n2(x))
        real = tokens.ne(0).unsqueeze(-1).float()
        return self.head((x * real).sum(1) / real.sum(1))


keep = (ids == 0).any(1)
ids, topics = ids[keep], topics[keep]
model = Reader()
opt = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(4):
    order = torch.randperm(len(ids))
    seen, right = 0, 0
    for pick in order.split(40):
        out = model(ids[pick])
        loss = F.cross_entropy(out, topics[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen, right = seen + len(pick), right + (out.argmax(-1) == topics[pick]).sum().item()
    print("epoch", epoch, "loss", loss.item(), "acc", right / seen)
