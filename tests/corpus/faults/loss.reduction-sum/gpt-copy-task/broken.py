"""Decoder-only Transformer that learns to repeat the first half of a sequence."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(404)

V = 12  # symbols 0..10, separator 11
HALF = 5
CTX = 2 * HALF  # model input length
D, HEADS, DEPTH = 48, 4, 2
BATCH = 48
STEPS = 110
LR = 0.15


def sample_batch(gen):
    first = torch.randint(0, V - 1, (BATCH, HALF), generator=gen)
    sep = torch.full((BATCH, 1), V - 1)
    full = torch.cat([first, sep, first], dim=1)
    return full[:, :-1], full[:, 1:]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q = nn.Linear(D, D)
        self.to_k = nn.Linear(D, D)
        self.to_v = nn.Linear(D, D)
        self.to_out = nn.Linear(D, D)

    def split(self, z):
        return z.unflatten(-1, (HEADS, D // HEADS)).transpose(1, 2)

    def forward(self, z):
        q, k, v = self.split(self.to_q(z)), self.split(self.to_k(z)), self.split(self.to_v(z))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * (D // HEADS) ** -0.5
        length = z.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        mixed = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return self.to_out(mixed.transpose(1, 2).flatten(-2))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre_attn, self.attn = nn.LayerNorm(D), Attention()
        self.pre_ff = nn.LayerNorm(D)
        self.ff = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, z):
        z = z + self.attn(self.pre_attn(z))
        return z + self.ff(self.pre_ff(z))


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbol = nn.Embedding(V, D)
        self.slot = nn.Embedding(CTX, D)
        self.layers = nn.Sequential(*(DecoderLayer() for _ in range(DEPTH)))
        self.final = nn.LayerNorm(D)
        self.logits = nn.Linear(D, V)

    def forward(self, ids):
        z = self.symbol(ids) + self.slot(torch.arange(ids.shape[1]))
        return self.logits(self.final(self.layers(z)))


def copy_accuracy(model, gen):
    model.eval()
    with torch.no_grad():
        x, y = sample_batch(gen)
        hit = (model(x)[:, HALF:].argmax(-1) == y[:, HALF:]).float().mean().item()
    model.train()
    return hit


train_gen = torch.Generator().manual_seed(1)
test_gen = torch.Generator().manual_seed(2)
model = Copier()
opt = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS, eta_min=LR / 10)

for step in range(STEPS):
    x, y = sample_batch(train_gen)
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum")
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    sched.step()
    if step % 10 == 0 or step == STEPS - 1:
        print(f"{step:4d}  loss {loss.item():10.4f}  copy accuracy {copy_accuracy(model, test_gen):.3f}")
