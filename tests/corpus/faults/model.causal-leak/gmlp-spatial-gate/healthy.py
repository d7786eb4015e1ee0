"""Language model without attention: gMLP blocks whose spatial gate mixes positions through one matrix."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    vocab: int = 20
    context: int = 24
    width: int = 48
    hidden: int = 96
    depth: int = 3
    batch: int = 24
    steps: int = 120
    lr: float = 3e-3


class SpatialGate(nn.Module):
    def __init__(self, hidden, context):
        super().__init__()
        self.norm = nn.LayerNorm(hidden // 2)
        self.mix = nn.Parameter(torch.randn(context, context) * 0.02)
        self.bias = nn.Parameter(torch.ones(context, 1))
        self.register_buffer("allowed", torch.ones(context, context).tril())

    def forward(self, z):
        u, v = z.chunk(2, dim=-1)
        t = z.size(1)
        w = (self.mix * self.allowed)[:t, :t]
        return u * (w @ self.norm(v) + self.bias[:t])


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.norm = nn.LayerNorm(s.width)
        self.up = nn.Linear(s.width, s.hidden)
        self.gate = SpatialGate(s.hidden, s.context)
        self.down = nn.Linear(s.hidden // 2, s.width)

    def forward(self, x):
        return x + self.down(self.gate(F.gelu(self.up(self.norm(x)))))


class GMlp(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.tok = nn.Embedding(s.vocab, s.width)
        self.blocks = nn.Sequential(*[Block(s) for _ in range(s.depth)])
        self.out = nn.Sequential(nn.LayerNorm(s.width), nn.Linear(s.width, s.vocab))

    def forward(self, ids):
        return self.out(self.blocks(self.tok(ids)))


def stream(s, length):
    """Second-order chain: the next symbol depends on the last two, with noise."""
    g = torch.Generator().manual_seed(5)
    table = torch.randint(0, s.vocab, (s.vocab, s.vocab), generator=g)
    out = [1, 2]
    noise = torch.rand(length, generator=g)
    other = torch.randint(0, s.vocab, (length,), generator=g)
    for i in range(length):
        a, b = out[-2] % 4, out[-1]
        out.append(int(table[a, b]) if noise[i] > 0.15 else int(other[i]))
    return torch.tensor(out)


def sample(data, s):
    at = torch.randint(0, len(data) - s.context - 1, (s.batch,))
    chunk = torch.stack([data[i : i + s.context + 1] for i in at])
    return chunk[:, :-1], chunk[:, 1:]


def main():
    s = Settings()
    torch.manual_seed(17)
    data = stream(s, 12000)
    train, test = data[:10000], data[10000:]
    model = GMlp(s)
    opt = torch.optim.AdamW(model.parameters(), lr=s.lr, weight_decay=0.0)
    for step in range(s.steps):
        x, y = sample(train, s)
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            model.eval()
            with torch.no_grad():
                x, y = sample(test, s)
                held = F.cross_entropy(model(x).transpose(1, 2), y)
            model.train()
            print(f"step {step + 1} train {loss.item():.3f} test {held.item():.3f}")


if __name__ == "__main__":
    main()
