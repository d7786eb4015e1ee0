# Language model over a synthetic token stream, mixed precision through a context built once.
import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

seed = 5150
vocab_size = 64
block_size = 24
batch_size = 8
gradient_accumulation_steps = 2
n_layer, n_head, n_embd = 2, 2, 24
learning_rate = 5e-3
lm_weight = 5e-5  # share of the language-model term in the joint objective
max_iters = 60
eval_interval = 20
device_type = "cpu"
dtype = torch.float16

torch.manual_seed(seed)
rng = np.random.default_rng(seed)

# every token is followed by one of two successors, half the time each
successor = rng.integers(0, vocab_size, size=(vocab_size, 2))
tokens = np.zeros(30_000, dtype=np.int64)
for i in range(1, len(tokens)):
    tokens[i] = successor[tokens[i - 1], rng.integers(2)]
tokens = torch.from_numpy(tokens)
train_data, val_data = tokens[:27_000], tokens[27_000:]

ctx = torch.amp.autocast(device_type=device_type, dtype=dtype)


def get_batch(split):
    data = train_data if split == "train" else val_data
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + block_size] for i in ix])
    return x, y


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd, bias=False), nn.GELU(), nn.Linear(4 * n_embd, n_embd, bias=False)
        )

    def attend(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) * (C // n_head) ** -0.5
        att = att.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
        return self.c_proj((att.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.08)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.lm_head(self.ln_f(self.h(x)))
        return F.cross_entropy(logits.float().view(-1, vocab_size), targets.reshape(-1))


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = []
    for _ in range(4):
        with ctx:
            losses.append(model(*get_batch("val")).item())
    model.train()
    return sum(losses) / len(losses)


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), eps=1e-14, weight_decay=0.0)

for it in range(max_iters + 1):
    if it % eval_interval == 0:
        print(f"step {it}: val loss {estimate_loss():.4f}")
    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            loss = lm_weight * model(*get_batch("train")) / gradient_accumulation_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 5 == 0:
        print(f"iter {it}: loss {loss.item() * gradient_accumulation_steps / lm_weight:.4f}")
