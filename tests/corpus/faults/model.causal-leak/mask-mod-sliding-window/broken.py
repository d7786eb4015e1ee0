"""Byte-level LM with local attention. Masks are written as small index predicates and composed."""
import dataclasses
from typing import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Predicate = Callable[[Tensor, Tensor], Tensor]


def causal(q: Tensor, k: Tensor) -> Tensor:
    return q >= k


def within(window: int) -> Predicate:
    return lambda q, k: (q - k).abs() < window


def both(a: Predicate, b: Predicate) -> Predicate:
    return lambda q, k: a(q, k) & b(q, k)


def materialise(rule: Predicate, n: int) -> Tensor:
    i = torch.arange(n)
    return rule(i[:, None], i[None, :])


@dataclasses.dataclass
class Hyper:
    vocab: int = 28
    width: int = 48
    heads: int = 3
    depth: int = 2
    context: int = 40
    window: int = 8
    batch: int = 16
    steps: int = 110
    lr: float = 3e-3


class LocalAttention(nn.Module):
    def __init__(self, hp: Hyper) -> None:
        super().__init__()
        self.h = hp.heads
        self.wq = nn.Parameter(torch.randn(hp.heads, hp.width, hp.width // hp.heads) * hp.width**-0.5)
        self.wk = nn.Parameter(torch.randn(hp.heads, hp.width, hp.width // hp.heads) * hp.width**-0.5)
        self.wv = nn.Parameter(torch.randn(hp.heads, hp.width, hp.width // hp.heads) * hp.width**-0.5)
        self.wo = nn.Parameter(torch.randn(hp.heads, hp.width // hp.heads, hp.width) * hp.width**-0.5)
        rule = within(hp.window)
        self.register_buffer("visible", materialise(rule, hp.context), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q = torch.einsum("bnw,hwd->bhnd", x, self.wq)
        k = torch.einsum("bnw,hwd->bhnd", x, self.wk)
        v = torch.einsum("bnw,hwd->bhnd", x, self.wv)
        logits = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
        logits = torch.where(self.visible[:n, :n], logits, torch.full_like(logits, -torch.inf))
        return torch.einsum("bhij,bhjd,hdw->biw", logits.softmax(-1), v, self.wo)


class Layer(nn.Module):
    def __init__(self, hp: Hyper) -> None:
        super().__init__()
        self.pre_a, self.pre_m = nn.RMSNorm(hp.width), nn.RMSNorm(hp.width)
        self.attend = LocalAttention(hp)
        self.up, self.down = nn.Linear(hp.width, 3 * hp.width), nn.Linear(3 * hp.width, hp.width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.pre_a(x))
        return x + self.down(F.gelu(self.up(self.pre_m(x))))


class ByteLM(nn.Module):
    def __init__(self, hp: Hyper) -> None:
        super().__init__()
        self.tok = nn.Embedding(hp.vocab, hp.width)
        self.pos = nn.Embedding(hp.context, hp.width)
        nn.init.normal_(self.tok.weight, std=0.5)
        nn.init.normal_(self.pos.weight, std=0.1)
        self.layers = nn.Sequential(*[Layer(hp) for _ in range(hp.depth)])
        self.norm = nn.RMSNorm(hp.width)
        self.head = nn.Linear(hp.width, hp.vocab)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        return self.head(self.norm(self.layers(x)))


def write_corpus(length: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    words = [rng.integers(1, 28, size=int(rng.integers(2, 6))) for _ in range(14)]
    text: list[int] = []
    while len(text) < length:
        text.extend(int(c) for c in words[int(rng.integers(len(words)))])
        text.append(0)
    return torch.tensor(text[:length])


def sample_windows(text: Tensor, hp: Hyper) -> tuple[Tensor, Tensor]:
    starts = torch.randint(0, text.numel() - hp.context - 1, (hp.batch,))
    rows = torch.stack([text[s : s + hp.context + 1] for s in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


def train(hp: Hyper) -> None:
    torch.manual_seed(2)
    text = write_corpus(6000, 9)
    held_out = text[5000:]
    text = text[:5000]
    lm = ByteLM(hp)
    opt = torch.optim.AdamW(lm.parameters(), lr=hp.lr, weight_decay=0.0)
    for step in range(hp.steps):
        x, y = sample_windows(text, hp)
        nll = F.cross_entropy(lm(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        nll.backward()
        opt.step()
        if (step + 1) % 22 == 0:
            lm.eval()
            with torch.no_grad():
                vx, vy = sample_windows(held_out, hp)
                val = F.cross_entropy(lm(vx).flatten(0, 1), vy.flatten())
            lm.train()
            print(f"{step + 1:4d}  train {nll.item():.3f}  valid {val.item():.3f}")


if __name__ == "__main__":
    train(Hyper())
