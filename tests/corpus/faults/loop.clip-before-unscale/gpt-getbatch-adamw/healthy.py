"""Half-precision GPT training loop with warm-up, decay groups and gradient clipping."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

seed = 2
vocab_size, block_size, n_embd, n_head, n_layer = 32, 24, 48, 4, 2
batch_size, max_iters, warmup_iters = 16, 55, 6
max_lr, min_lr, grad_clip = 3e-3, 3e-4, 1.0

torch.manual_seed(seed)
gen = torch.Generator().manual_seed(seed)
transition = torch.softmax(3.0 * torch.randn(vocab_size, vocab_size, generator=gen), dim=-1)
tokens = [0]
for _ in range(9_000):
    tokens.append(int(torch.multinomial(transition[tokens[-1]], 1, generator=gen)))
data = torch.tensor(tokens)
splits = {"train": data[:8_000], "val": data[8_000:]}


def get_batch(split):
    source = splits[split]
    ix = torch.randint(len(source) - block_size - 1, (batch_size,)).tolist()
    windows = torch.stack([source[i : i + block_size + 1] for i in ix])
    return windows[:, :-1], windows[:, 1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.fc = nn.Linear(n_embd, 4 * n_embd)
        self.fc_proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, n_head, C // n_head).transpose(1, 2) for z in self.attn(self.ln1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.fc_proj(F.gelu(self.fc(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.blocks = nn.ModuleList([Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.float().reshape(-1, vocab_size), targets.reshape(-1))


def lr_at(it):
    if it < warmup_iters:
        return max_lr * (it + 1) / warmup_iters
    progress = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * progress)) * (max_lr - min_lr)


model = GPT()
groups = [
    {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
    {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=max_lr, betas=(0.9, 0.95))
scaler = torch.amp.GradScaler("cpu")
ctx = torch.autocast(device_type="cpu", dtype=torch.float16)

for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(it)
    x, y = get_batch("train")
    with ctx:
        loss = model(x, y)
    scaler.scale(loss).backward()
    if grad_clip:
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if it % 10 == 0:
        print(f"iter {it}: loss {loss.item():.4f}, grad norm {norm.item():.3f}, lr {lr_at(it):.2e}")

model.eval()
with torch.no_grad(), ctx:
    print(f"val loss {sum(model(*get_batch('val')).item() for _ in range(8)) / 8:.4f}")
