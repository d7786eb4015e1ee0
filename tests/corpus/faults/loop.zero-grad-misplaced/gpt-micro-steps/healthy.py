"""A two-block GPT on arithmetic progressions; four micro-batches per update, batches drawn at random."""
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

# ---- settings -------------------------------------------------------------
seed = 77
block_size = 16
vocab_size = 29
n_embd, n_head, n_layer = 32, 2, 2
micro_batch, micro_steps = 8, 4
max_iters, eval_interval = 50, 10
learning_rate, weight_decay, grad_clip = 6e-3, 0.01, 1.0
# ---------------------------------------------------------------------------
torch.manual_seed(seed)


def progressions(n):
    start = torch.randint(0, vocab_size, (n, 1))
    stride = torch.randint(1, 6, (n, 1))
    return (start + stride * torch.arange(block_size + 1)) % vocab_size


corpus = {"train": progressions(3000), "val": progressions(300)}


def get_batch(split):
    rows = corpus[split][torch.randint(len(corpus[split]), (micro_batch,))]
    return rows[:, :-1], rows[:, 1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (z.view(b, t, n_head, c // n_head).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        nn.init.normal_(self.wte.weight, std=0.3)
        nn.init.normal_(self.wpe.weight, std=0.3)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.reshape(-1))


model = GPT()
matrices = [p for p in model.parameters() if p.dim() >= 2]
vectors = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}],
    lr=learning_rate,
    betas=(0.9, 0.95),
)


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = {split: sum(model(*get_batch(split))[1].item() for _ in range(5)) / 5 for split in corpus}
    model.train()
    return losses


for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * min(1.0, (it + 1) / 5) * (0.55 + 0.45 * math.cos(math.pi * it / max_iters))
    optimizer.zero_grad(set_to_none=True)
    for _ in range(micro_steps):
        xb, yb = get_batch("train")
        _, loss = model(xb, yb)
        (loss / micro_steps).backward()
    nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    if it % eval_interval == 0 or it == max_iters - 1:
        losses = estimate_loss()
        print(f"iter {it}: train {losses['train']:.4f} val {losses['val']:.4f}")
