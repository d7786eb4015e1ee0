"""Train a small LM on left-padded batches, the layout used for batched generation, then generate from it.

Positions are counted from the first real token and padded keys are masked; padded queries may look at themselves so
that no softmax row is empty, and their outputs are never scored.
"""
import torch
from torch import nn
from torch.nn import functional as F

PAD, BOS, EOS = 0, 1, 2
FIRST, NUM_WORDS = 3, 20
VOCAB = FIRST + NUM_WORDS
MAX_LEN = 20


def sentence(rng):
    """BOS, a walk over the words in strides of one to three, EOS."""
    n = int(torch.randint(9, 17, (1,), generator=rng))
    start = int(torch.randint(NUM_WORDS, (1,), generator=rng))
    walk = torch.randint(1, 4, (n,), generator=rng).cumsum(0)
    return [BOS] + ((start + walk) % NUM_WORDS + FIRST).tolist() + [EOS]


def left_pad(rows):
    width = max(map(len, rows))
    ids = torch.tensor([[PAD] * (width - len(r)) + r for r in rows])
    mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows]).bool()
    return ids, mask


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.dk = h, d // h
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(d, 3 * d), nn.ReLU(), nn.Linear(3 * d, d))

    def forward(self, x, allowed):
        b, t, d = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, t, self.h, self.dk).transpose(1, 2) for f in (self.q, self.k, self.v))
        att = q @ k.transpose(-1, -2) / self.dk**0.5
        att = att.masked_fill(~allowed, float("-inf")).softmax(-1)
        x = x + self.o((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.norm2(x))


class LeftPaddedLM(nn.Module):
    def __init__(self, d=48, h=4, n_layers=2):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.pos = nn.Embedding(MAX_LEN, d)
        nn.init.normal_(self.pos.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(d, h) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, ids, mask):
        t = ids.shape[1]
        position_ids = (mask.long().cumsum(-1) - 1).clamp(min=0)
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        allowed = (causal & mask[:, None, :]) | torch.eye(t, dtype=torch.bool)
        x = self.tok(ids) + self.pos(position_ids)
        for layer in self.layers:
            x = layer(x, allowed[:, None])
        return self.out(self.norm(x))


def train():
    torch.manual_seed(7)
    rng = torch.Generator().manual_seed(7)
    model = LeftPaddedLM()
    optim = torch.optim.Adam(model.parameters(), lr=2e-3)
    for it in range(121):
        ids, mask = left_pad([sentence(rng) for _ in range(24)])
        logits = model(ids[:, :-1], mask[:, :-1])
        # the step from padding to BOS is not a prediction: score only where the input is real
        targets = ids[:, 1:].masked_fill(~mask[:, :-1], -100)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=-100)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if it % 30 == 0:
            print(f"iter {it:3d} loss {loss.item():.3f}")
    return model


@torch.no_grad()
def generate(model, prompts, new_tokens):
    model.eval()
    ids, mask = left_pad(prompts)
    for _ in range(new_tokens):
        nxt = model(ids, mask)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], 1)
        mask = torch.cat([mask, torch.ones_like(nxt, dtype=torch.bool)], 1)
    return ids


if __name__ == "__main__":
    lm = train()
    print(generate(lm, [[BOS, 5, 6], [BOS, 9, 12, 13, 15]], 4))
