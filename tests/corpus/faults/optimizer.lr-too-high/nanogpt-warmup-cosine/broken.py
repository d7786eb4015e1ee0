# A decoder-only language model on a stream from a Markov chain.
# Configuration is a block of globals; learning rate has linear warm-up and cosine decay.
import math

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

# data
vocab_size = 32
block_size = 32
batch_size = 16
# model
n_layer, n_head, n_embd = 2, 2, 48
bias = False
# optimizer
learning_rate = 4e-1
min_lr = learning_rate / 10
max_iters = 90
warmup_iters = 8
lr_decay_iters = 90
weight_decay = 0.1
beta1, beta2 = 0.9, 0.95
grad_clip = 1.0
log_interval = 10
seed = 2024

torch.manual_seed(seed)
rng = np.random.default_rng(seed)


def markov_stream(length):
    table = rng.dirichlet(np.full(vocab_size, 0.05), size=vocab_size)
    cdf = table.cumsum(axis=1)
    u = rng.random(length)
    out = np.zeros(length, dtype=np.int64)
    for t in range(1, length):
        out[t] = min(np.searchsorted(cdf[out[t - 1]], u[t]), vocab_size - 1)
    return torch.from_numpy(out)


stream = markov_stream(40_000)
train_ids, val_ids = stream[:36_000], stream[36_000:]


def get_batch(split):
    ids = train_ids if split == "train" else val_ids
    ix = torch.randint(len(ids) - block_size, (batch_size,))
    x = torch.stack([ids[i:i + block_size] for i in ix])
    y = torch.stack([ids[i + 1:i + 1 + block_size] for i in ix])
    return x, y


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (z.view(b, t, n_head, c // n_head).transpose(1, 2) for z in self.c_attn(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = SelfAttention()
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.fc_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.fc_proj(F.gelu(self.fc(self.ln_2(x))))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Layer() for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd, bias=bias)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, std=0.06 / (math.sqrt(2 * n_layer) if name.endswith("proj.weight") else 1))

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for layer in self.h:
            x = layer(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, vocab_size), targets.reshape(-1))


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


model = LanguageModel()
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}],
    lr=learning_rate,
    betas=(beta1, beta2),
)

for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    loss = model(*get_batch("train"))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % log_interval == 0 or it == max_iters - 1:
        print(f"iter {it}: loss {loss.item():.4f}, lr {get_lr(it):.2e}")

model.eval()
with torch.no_grad():
    val = torch.stack([model(*get_batch("val")) for _ in range(8)]).mean()
print(f"val loss {val.item():.4f} (uniform {math.log(vocab_size):.4f})")
