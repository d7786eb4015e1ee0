"""GPT on sequences whose vocabulary depends on the place in the sequence (day plans hour by hour)."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 24
    vocab_size: int = 30
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 48


@dataclass
class TrainConfig:
    batch_size: int = 24
    max_steps: int = 90
    lr: float = 2e-3
    log_every: int = 15
    seed: int = 1234


class Schedule:
    """Each hour has its own distribution over activities, tilted by the previous activity."""

    def __init__(self, cfg: GPTConfig, seed: int):
        g = torch.Generator().manual_seed(seed)
        self.hourly = 2.5 * torch.randn(cfg.block_size + 1, cfg.vocab_size, generator=g)
        self.previous = 1.0 * torch.randn(cfg.vocab_size, cfg.vocab_size, generator=g)
        self.g = g

    def draw(self, n):
        days = [torch.multinomial(self.hourly[0].softmax(-1), n, replacement=True, generator=self.g)]
        for hour in range(1, len(self.hourly)):
            probs = (self.hourly[hour] + self.previous[days[-1]]).softmax(-1)
            days.append(torch.multinomial(probs, 1, generator=self.g).squeeze(1))
        days = torch.stack(days, dim=1)
        return days[:, :-1], days[:, 1:]


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.c_attn = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.c_proj = nn.Linear(cfg.n_embd, cfg.n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, self.n_head, -1).transpose(1, 2) for z in self.c_attn(x).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1 = nn.LayerNorm(cfg.n_embd)
        self.attn = CausalSelfAttention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(), nn.Linear(4 * cfg.n_embd, cfg.n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer))
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)

    def forward(self, idx, targets):
        pos = torch.arange(idx.size(1), device=idx.device).unsqueeze(0)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


def main():
    gpt_cfg, cfg = GPTConfig(), TrainConfig()
    torch.manual_seed(cfg.seed)
    schedule = Schedule(gpt_cfg, cfg.seed)
    model = GPT(gpt_cfg)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], lr=cfg.lr
    )
    val_batch = schedule.draw(cfg.batch_size)
    for step in range(cfg.max_steps):
        loss = model(*schedule.draw(cfg.batch_size))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % cfg.log_every == 0:
            model.eval()
            with torch.no_grad():
                val = model(*val_batch)
            model.train()
            print(f"step {step + 1:3d}: train {loss.item():.4f} val {val.item():.4f}")


if __name__ == "__main__":
    main()
