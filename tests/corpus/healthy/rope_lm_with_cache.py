"""Rotary positions: no position table. After training, cached step-by-step decoding is compared with the full forward pass."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM, HEADS = 24, 48, 3


def rotate(x, offset):
    """x: (batch, heads, time, d). Positions offset .. offset + time - 1."""
    t, d = x.shape[-2:]
    freq = 1.0 / 1000.0 ** (torch.arange(0, d, 2) / d)
    angle = torch.arange(offset, offset + t)[:, None] * freq
    cos, sin = angle.cos(), angle.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


class RotaryAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q, k, v = (z.view(b, t, HEADS, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        past = 0 if cache is None or "k" not in cache else cache["k"].shape[2]
        q, k = rotate(q, past), rotate(k, past)
        if cache is not None:
            if past:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past == 0)
        return self.out(y.transpose(1, 2).flatten(2))


class RotaryLM(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.attn = nn.ModuleList(RotaryAttention() for _ in range(depth))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Linear(96, DIM)) for _ in range(depth))
        self.norm1 = nn.ModuleList(nn.RMSNorm(DIM) for _ in range(depth))
        self.norm2 = nn.ModuleList(nn.RMSNorm(DIM) for _ in range(depth))
        self.final = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, caches=None):
        x = self.embed(ids)
        for i in range(len(self.attn)):
            x = x + self.attn[i](self.norm1[i](x), None if caches is None else caches[i])
            x = x + self.mlp[i](self.norm2[i](x))
        return self.head(self.final(x))


def text(n, length, table, gen):
    seq = torch.randint(0, VOCAB, (n, length), generator=gen)
    pick = torch.randint(0, 3, (n, length), generator=gen)
    for t in range(1, length):
        seq[:, t] = table[seq[:, t - 1], pick[:, t]]
    return seq


torch.manual_seed(26)
gen = torch.Generator().manual_seed(26)
table = torch.stack([torch.randperm(VOCAB, generator=gen)[:3] for _ in range(VOCAB)])
model = RotaryLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
for step in range(120):
    tokens = text(20, 25, table, gen)
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0 or step == 119:
        print(f"step {step:3d} loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    tokens = text(2, 20, table, gen)
    full = model(tokens)
    caches = [{} for _ in model.attn]
    stepwise = torch.cat([model(tokens[:, t : t + 1], caches) for t in range(20)], dim=1)
print(f"cached decoding differs from the full pass by at most {(full - stepwise).abs().max().item():.1e}")
