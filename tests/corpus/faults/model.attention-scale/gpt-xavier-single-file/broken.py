"""Decoder-only model of clock-like sequences: each one advances by its own stride, or one more."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)

VOCAB = 20
T = 23
WIDTH = 64


def make_batch(n):
    start = torch.randint(0, VOCAB, (n, 1))
    stride = torch.randint(1, 7, (n, 1))
    advance = stride + torch.randint(0, 2, (n, T + 1))
    return (start + advance.cumsum(1)) % VOCAB


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("hidden", torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1))

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        att = torch.bmm(q, k.transpose(1, 2))
        att = att.masked_fill(self.hidden, float("-inf"))
        return self.out(torch.bmm(F.softmax(att, dim=-1), v))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_a, self.ln_m = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.att = Attention()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.att(self.ln_a(x))
        return x + self.down(F.relu(self.up(self.ln_m(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCAB, WIDTH)
        self.place = nn.Embedding(T, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.ln = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, ids):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.ln(self.blocks(x)))


model = Model()
optim = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(90):
    seq = make_batch(32)
    logits = model(seq[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), seq[:, 1:].reshape(-1))
    optim.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    if i % 10 == 0:
        print(f"{i:3d} {loss.item():.4f}")
