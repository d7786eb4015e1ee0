"""Decoder-only LM whose output projection is the embedding matrix (tied weights), with proper decay groups."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab_size: int = 40
    block_size: int = 32
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 48


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(cfg.n_embd), CausalSelfAttention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.n_embd)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(), nn.Linear(4 * cfg.n_embd, cfg.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.h = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer))
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.apply(self._init)
        self.lm_head.weight = self.wte.weight

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.05)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def markov_corpus(n, vocab, branching, gen):
    successors = torch.stack([torch.randperm(vocab, generator=gen)[:branching] for _ in range(vocab)])
    picks = torch.randint(0, branching, (n,), generator=gen)
    out = [0]
    for p in picks.tolist():
        out.append(int(successors[out[-1], p]))
    return torch.tensor(out)


def get_batch(data, cfg, batch_size, gen):
    ix = torch.randint(len(data) - cfg.block_size - 1, (batch_size,), generator=gen).tolist()
    chunk = torch.stack([data[i : i + cfg.block_size + 1] for i in ix])
    return chunk[:, :-1], chunk[:, 1:]


@torch.no_grad()
def estimate(model, data, cfg):
    model.eval()
    gen = torch.Generator().manual_seed(5)
    losses = [model(*get_batch(data, cfg, 32, gen)).item() for _ in range(4)]
    model.train()
    return sum(losses) / len(losses)


torch.manual_seed(1337)
gen = torch.Generator().manual_seed(1337)
cfg = GPTConfig()
corpus = markov_corpus(12000, cfg.vocab_size, 4, gen)
train_data, val_data = corpus[:10000], corpus[10000:]
model = GPT(cfg)

decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95)
)
for step in range(120):
    loss = model(*get_batch(train_data, cfg, 16, gen))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 30 == 0 or step == 119:
        print(f"step {step}: train {loss.item():.3f} val {estimate(model, val_data, cfg):.3f} (floor {math.log(4):.3f}, uniform {math.log(40):.3f})")
