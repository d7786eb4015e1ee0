"""Which of two markers comes first on a strand? Tokens are rows of a parameter; attention is written with functions only."""
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SYMBOLS, LENGTH, WIDTH, HEADS = 9, 14, 32, 4


def strands(count, rng):
    """Markers 0 and 1 sit at random places among filler; the label says whether 0 stands before 1."""
    ids = rng.integers(2, SYMBOLS, (count, LENGTH))
    places = np.stack([rng.permutation(LENGTH)[:2] for _ in range(count)])
    ids[np.arange(count), places[:, 0]] = 0
    ids[np.arange(count), places[:, 1]] = 1
    return torch.from_numpy(ids), torch.from_numpy((places[:, 0] < places[:, 1]).astype(np.int64))


class StrandReader(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.symbols = nn.Parameter(torch.randn(SYMBOLS, WIDTH) * 0.5)
        slot = torch.arange(LENGTH)[:, None] / 3.0 * 2.0 ** -torch.arange(WIDTH // 2)
        self.register_buffer("slots", torch.cat([slot.sin(), slot.cos()], dim=1) * 0.5)
        self.qkv = nn.ParameterList([nn.Parameter(torch.randn(3 * WIDTH, WIDTH) / math.sqrt(WIDTH)) for _ in range(depth)])
        self.out = nn.ParameterList([nn.Parameter(torch.randn(WIDTH, WIDTH) / math.sqrt(WIDTH)) for _ in range(depth)])
        self.up = nn.ParameterList([nn.Parameter(torch.randn(2 * WIDTH, WIDTH) / math.sqrt(WIDTH)) for _ in range(depth)])
        self.down = nn.ParameterList([nn.Parameter(torch.randn(WIDTH, 2 * WIDTH) / math.sqrt(2 * WIDTH)) for _ in range(depth)])
        self.answer = nn.Linear(WIDTH, 2)

    def forward(self, ids):
        h = self.symbols[ids] + self.slots
        for qkv, out, up, down in zip(self.qkv, self.out, self.up, self.down):
            q, k, v = F.linear(F.layer_norm(h, (WIDTH,)), qkv).chunk(3, dim=-1)
            q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            h = h + F.linear(mixed, out)
            h = h + F.linear(F.gelu(F.linear(F.layer_norm(h, (WIDTH,)), up)), down)
        return self.answer(F.layer_norm(h, (WIDTH,)).mean(dim=1))


def main():
    random.seed(27)
    np.random.seed(27)
    torch.manual_seed(27)
    rng = np.random.default_rng(27)
    reader = StrandReader()
    optimizer = torch.optim.Adam(reader.parameters(), lr=2e-3)
    for step in range(110):
        ids, label = strands(64, rng)
        loss = F.cross_entropy(reader(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 11 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")
    reader.eval()
    with torch.no_grad():
        ids, label = strands(256, rng)
        print(f"accuracy {(reader(ids).argmax(1) == label).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
