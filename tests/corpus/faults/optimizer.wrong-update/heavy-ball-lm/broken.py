"""Character model over a toy grammar, trained with the optimizer that our embedded target also has to run."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Optimizer


class HeavyBall(Optimizer):
    """SGD with momentum: v <- mu v + g, w <- w - lr v. Buffers are made on the first step."""

    def __init__(self, params, lr, momentum=0.9):
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum {momentum}")
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = p.grad
                else:
                    state["velocity"].mul_(group["momentum"]).add_(p.grad)
                p.add_(state["velocity"], alpha=-group["lr"])


SUBJECTS = ["the cat", "a dog", "the old man", "my sister"]
VERBS = ["sees", "likes", "follows", "avoids"]
OBJECTS = ["the moon", "a bird", "the river", "fresh bread"]


def make_corpus(sentences, rng):
    text = " ".join(f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)}." for _ in range(sentences))
    vocab = {c: i for i, c in enumerate(sorted(set(text)))}
    return torch.tensor([vocab[c] for c in text]), vocab


class CharGRU(nn.Module):
    def __init__(self, vocab, dim=64):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        hidden, _ = self.rnn(self.table(ids))
        return self.out(hidden)


def draw(stream, batch, length):
    starts = torch.randint(0, len(stream) - length - 1, (batch,))
    window = torch.stack([stream[s : s + length + 1] for s in starts])
    return window[:, :-1], window[:, 1:]


def main():
    random.seed(8)
    np.random.seed(8)
    torch.manual_seed(8)
    stream, vocab = make_corpus(600, random)
    model = CharGRU(len(vocab))
    optimizer = HeavyBall(model.parameters(), lr=0.12)
    model.train()
    for it in range(1, 121):
        ids, nxt = draw(stream, 16, 32)
        loss = F.cross_entropy(model(ids).flatten(0, 1), nxt.flatten())
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        if it % 15 == 0:
            print(f"{it:4d}  {loss.item():.4f}")


if __name__ == "__main__":
    main()
