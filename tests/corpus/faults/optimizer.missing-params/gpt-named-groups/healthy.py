"""Next-event prediction on machine logs: decoder with learned positions, parameter groups by name."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ModelConfig:
    events: int = 16
    window: int = 12
    dim: int = 32
    heads: int = 2
    depth: int = 2


class DecoderLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.attn_norm = nn.LayerNorm(c.dim)
        self.attn_in = nn.Linear(c.dim, 3 * c.dim)
        self.attn_out = nn.Linear(c.dim, c.dim)
        self.ffn_norm = nn.LayerNorm(c.dim)
        self.ffn_in = nn.Linear(c.dim, 4 * c.dim)
        self.ffn_out = nn.Linear(4 * c.dim, c.dim)

    def forward(self, h):
        b, t, d = h.shape
        q, k, v = (z.reshape(b, t, self.heads, -1).transpose(1, 2) for z in self.attn_in(self.attn_norm(h)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.attn_out(mixed.transpose(1, 2).flatten(2))
        return h + self.ffn_out(F.gelu(self.ffn_in(self.ffn_norm(h))))


class LogModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.event = nn.Embedding(c.events, c.dim)
        self.position = nn.Parameter(torch.randn(c.window, c.dim) * 0.3)
        self.layers = nn.ModuleList([DecoderLayer(c) for _ in range(c.depth)])
        self.norm = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.events)

    def forward(self, events):
        h = self.event(events) + self.position
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


def machine_logs(n, c, rng):
    """Event t depends on the one before and, at every fourth place, on the place itself."""
    rows = [torch.randint(c.events, (n,), generator=rng)]
    for t in range(c.window):
        follow = (rows[-1] * 3 + 1) % c.events
        fixed = torch.full_like(follow, t)
        noise = torch.randint(c.events, (n,), generator=rng)
        event = fixed if t % 4 == 3 else follow
        rows.append(torch.where(torch.rand(n, generator=rng) < 0.9, event, noise))
    return torch.stack(rows, dim=1)


def build_optimizer(model, lr, decay):
    named = dict(model.named_parameters())
    groups = [
        {"params": [p for n, p in named.items() if p.dim() > 1], "weight_decay": decay},
        {"params": [p for n, p in named.items() if n.endswith("bias") or "norm" in n], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr)


def main():
    torch.manual_seed(71)
    rng = torch.Generator().manual_seed(72)
    c = ModelConfig()
    logs, held_out = machine_logs(2000, c, rng), machine_logs(300, c, rng)
    model = LogModel(c)
    optimizer = build_optimizer(model, lr=4e-3, decay=0.02)
    for step in range(1, 91):
        model.train()
        rows = logs[torch.randint(len(logs), (32,), generator=rng)]
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, c.events), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 15 == 0:
            model.eval()
            with torch.no_grad():
                hit = (model(held_out[:, :-1]).argmax(-1) == held_out[:, 1:]).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} next-event accuracy {hit:.3f}")


if __name__ == "__main__":
    main()
