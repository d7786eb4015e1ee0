"""Small decoder on bracket sequences, float16 autocast; every option lives in one namespace."""
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = SimpleNamespace(
    seed=140,
    kinds=4,
    context=16,
    width=32,
    heads=4,
    steps=80,
    batch=16,
    lr=4e-3,
    scaler=dict(init_scale=2.0**26, backoff_factor=0.85, growth_interval=1000),
)
torch.manual_seed(cfg.seed)
stream = torch.Generator().manual_seed(cfg.seed)


def brackets(n):
    """Openers 0..k-1, closers k..2k-1; well nested, so a closer is determined by the open ones."""
    rows = []
    for _ in range(n):
        row, stack = [], []
        while len(row) < cfg.context + 1:
            if stack and torch.rand(1, generator=stream).item() < 0.5:
                row.append(cfg.kinds + stack.pop())
            else:
                kind = torch.randint(cfg.kinds, (1,), generator=stream).item()
                stack.append(kind)
                row.append(kind)
        rows.append(row)
    return torch.tensor(rows)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(2 * cfg.kinds, cfg.width)
        self.places = nn.Embedding(cfg.context, cfg.width)
        self.norm1 = nn.LayerNorm(cfg.width)
        self.attention = nn.MultiheadAttention(cfg.width, cfg.heads, batch_first=True)
        self.norm2 = nn.LayerNorm(cfg.width)
        self.ffn = nn.Sequential(nn.Linear(cfg.width, 2 * cfg.width), nn.GELU(), nn.Linear(2 * cfg.width, cfg.width))
        self.norm3 = nn.LayerNorm(cfg.width)
        self.unembed = nn.Linear(cfg.width, 2 * cfg.kinds)

    def forward(self, ids):
        t = ids.size(1)
        h = self.tokens(ids) + self.places.weight[:t]
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        a = self.norm1(h)
        h = h + self.attention(a, a, a, attn_mask=future, need_weights=False)[0]
        h = h + self.ffn(self.norm2(h))
        return self.unembed(self.norm3(h))


rows = brackets(1024)
held_out = brackets(128)
model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
scaler = torch.amp.GradScaler("cpu", **cfg.scaler)
for step in range(cfg.steps):
    picked = rows[torch.randint(len(rows), (cfg.batch,))]
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(picked[:, :-1])
    loss = F.cross_entropy(logits.float().flatten(0, 1), picked[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 16 == 15:
        model.eval()
        with torch.no_grad():
            val = F.cross_entropy(model(held_out[:, :-1]).flatten(0, 1), held_out[:, 1:].flatten()).item()
        model.train()
        print(f"step {step + 1} loss {loss.item():.4f} held-out {val:.4f} scale {scaler.get_scale():g}")
