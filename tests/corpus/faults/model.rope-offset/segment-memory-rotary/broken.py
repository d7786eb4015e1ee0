"""Character model over long texts, read in segments: each layer keeps the previous segment's states as extra keys (rotary positions)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(99)
np.random.seed(99)

VOCAB = 20
SEGMENT = 12
STREAMS = 16
WIDTH = 48
HEADS = 4
HEAD = WIDTH // HEADS


def write_streams(num_streams, length, seed):
    """Every symbol repeats the one 9 places back, shifted by one, most of the time."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, VOCAB, (num_streams, length))
    for t in range(9, length):
        copy = rng.random(num_streams) < 0.9
        s[copy, t] = (s[copy, t - 9] + 1) % VOCAB
    return torch.from_numpy(s)


def rotary(x, start):
    freq = 1.0 / (1000.0 ** (torch.arange(0, HEAD, 2) / HEAD))
    angle = torch.outer(torch.arange(start, start + x.size(-2)).float(), freq)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


class RecurrentLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.kv = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x, memory):
        seen = x if memory is None else torch.cat([memory, x], dim=1)
        past = seen.size(1) - x.size(1)
        bsz, n, _ = x.shape
        q = self.q(self.norm1(x)).view(bsz, n, HEADS, HEAD).transpose(1, 2)
        k, v = self.kv(self.norm1(seen)).view(bsz, past + n, 2, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        q, k = rotary(q, 0), rotary(k, 0)
        visible = torch.ones(n, past + n, dtype=torch.bool).tril(past)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.proj(y.transpose(1, 2).reshape(bsz, n, WIDTH))
        return x + self.ff(self.norm2(x))


class SegmentLM(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList([RecurrentLayer() for _ in range(depth)])
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids, memories):
        x = self.embed(ids)
        kept = []
        for layer, memory in zip(self.layers, memories):
            kept.append(x.detach())
            x = layer(x, memory)
        return self.out(self.norm(x)), kept

    def blank(self):
        return [None] * len(self.layers)


model = SegmentLM()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for text in range(12):
    ids = write_streams(STREAMS, SEGMENT * 8 + 1, 100 + text)
    memories = model.blank()
    for s in range(8):
        lo = s * SEGMENT
        logits, memories = model(ids[:, lo : lo + SEGMENT], memories)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, lo + 1 : lo + SEGMENT + 1].reshape(-1))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    print(f"text {text} last segment loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    ids = write_streams(STREAMS, SEGMENT * 8 + 1, 999)
    memories, total = model.blank(), 0.0
    for s in range(8):
        lo = s * SEGMENT
        logits, memories = model(ids[:, lo : lo + SEGMENT], memories)
        total += F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, lo + 1 : lo + SEGMENT + 1].reshape(-1)).item()
print(f"held-out nll {total / 8:.4f}")
