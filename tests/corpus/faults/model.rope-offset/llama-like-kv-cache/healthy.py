"""Rotary decoder trained on modular sequences, then greedy decoding with a key/value cache."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, CONTEXT, PERIOD = 24, 24, 6


def rotary_angles(head_dim, length, theta=1000.0):
    inv = theta ** (-torch.arange(0, head_dim, 2) / head_dim)
    return torch.outer(torch.arange(length), inv)


def rotate(x, angles):
    """x: (batch, heads, time, head_dim); angles: (time, head_dim / 2)."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x, angles, cache=None):
        b, t, d = x.shape
        q, k, v = (w(x).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        start = 0 if cache is None or "k" not in cache else cache["k"].shape[2]
        q, k = rotate(q, angles[start : start + t]), rotate(k, angles[start : start + t])
        if cache is not None:
            if start:
                k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
            cache["k"], cache["v"] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=start == 0)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = Attention(dim, heads)
        self.attn_norm, self.mlp_norm = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.gate, self.up = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(dim, 2 * dim, bias=False)
        self.down = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x, angles, cache=None):
        x = x + self.attn(self.attn_norm(x), angles, cache)
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class TinyLlama(nn.Module):
    def __init__(self, dim=48, heads=3, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.RMSNorm(dim)
        self.output = nn.Linear(dim, VOCAB, bias=False)
        self.register_buffer("angles", rotary_angles(dim // heads, CONTEXT), persistent=False)

    def forward(self, ids, caches=None):
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, self.angles, None if caches is None else caches[i])
        return self.output(self.norm(x))


def periodic(n):
    """A random motif of PERIOD tokens, repeated: after one period everything can be predicted."""
    motif = torch.randint(0, VOCAB, (n, PERIOD))
    return motif.repeat(1, CONTEXT // PERIOD + 1)[:, : CONTEXT + 1]


@torch.no_grad()
def greedy(model, prompt, new_tokens):
    model.eval()
    caches = [{} for _ in model.layers]
    token = model(prompt, caches)[:, -1:].argmax(-1)
    out = [token]
    for _ in range(new_tokens - 1):
        token = model(token, caches)[:, -1:].argmax(-1)
        out.append(token)
    model.train()
    return torch.cat(out, dim=1)


def main():
    torch.manual_seed(55)
    model = TinyLlama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    for step in range(120):
        seq = periodic(32)
        loss = F.cross_entropy(model(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 19:
            seq = periodic(32)
            written = greedy(model, seq[:, :12], 10)
            exact = (written == seq[:, 12:22]).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} greedy match {exact:.3f}")


if __name__ == "__main__":
    main()
