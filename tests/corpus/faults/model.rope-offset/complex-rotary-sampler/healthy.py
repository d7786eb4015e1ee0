"""Small decoder with complex-valued rotary embeddings; samples from a cache while it trains."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(40)

VOCAB, DIM, HEADS, CTX = 24, 48, 4, 28


def rotary(length, head, base=10000.0):
    inv = base ** (-torch.arange(0, head, 2).float() / head)
    angle = torch.outer(torch.arange(length).float(), inv)
    return torch.polar(torch.ones_like(angle), angle)


def rotate(x, spin):
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * spin).flatten(-2).type_as(x)


class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.wqkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.wo = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, spin, past=None):
        b, t, _ = x.shape
        q, k, v = self.wqkv(x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        start = 0 if past is None else past[0].size(2)
        q, k = rotate(q, spin[start : start + t]), rotate(k, spin[start : start + t])
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.wo(y.transpose(1, 2).reshape(b, t, DIM)), (k, v)


class Decoder(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.attn = nn.ModuleList([Attn() for _ in range(depth)])
        self.mlp = nn.ModuleList([nn.Sequential(nn.Linear(DIM, 96), nn.SiLU(), nn.Linear(96, DIM)) for _ in range(depth)])
        self.n1 = nn.ModuleList([nn.RMSNorm(DIM) for _ in range(depth)])
        self.n2 = nn.ModuleList([nn.RMSNorm(DIM) for _ in range(depth)])
        self.last = nn.RMSNorm(DIM)
        self.lm = nn.Linear(DIM, VOCAB, bias=False)
        self.register_buffer("spin", rotary(64, DIM // HEADS), persistent=False)

    def forward(self, ids, cache=None):
        x, grown = self.emb(ids), []
        for i, attn in enumerate(self.attn):
            y, kv = attn(self.n1[i](x), self.spin, None if cache is None else cache[i])
            grown.append(kv)
            x = x + y
            x = x + self.mlp[i](self.n2[i](x))
        return self.lm(self.last(x)), grown

    @torch.no_grad()
    def continue_from(self, ids, n):
        was = self.training
        self.eval()
        logits, cache = self(ids)
        for _ in range(n):
            nxt = logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, nxt], 1)
            logits, cache = self(nxt, cache)
        self.train(was)
        return ids


def periodic(n):
    period = torch.randint(3, 7, (n, 1))
    motif = torch.randint(0, VOCAB, (n, 6))
    t = torch.arange(CTX + 1)[None] % period
    return motif.gather(1, t)


net = Decoder()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)
for step in range(1, 101):
    seq = periodic(24)
    logits, _ = net(seq[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), seq[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        probe = periodic(8)
        guess = net.continue_from(probe[:, :14], 10)
        agree = (guess[:, 14:] == probe[:, 14:24]).float().mean()
        print(f"step {step} loss {loss.item():.3f} continuation accuracy {agree:.3f}")
