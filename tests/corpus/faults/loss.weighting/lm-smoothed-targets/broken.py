"""Note-to-note model with label smoothing written out by hand, nanoGPT-like batches."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2024)

vocab_size, block_size, batch_size = 24, 16, 32
n_embd, n_head = 48, 4
max_iters, learning_rate, warmup = 100, 3e-3, 10
smoothing = 0.1

# one long tune: every note allows two jumps
jumps = torch.tensor([1, 5, 2, 7])
tune, note = [], 0
for coin in torch.randint(0, 2, (14400,)).tolist():
    tune.append(note)
    note = (note + int(jumps[note % 4]) + 8 * coin) % vocab_size
tune = torch.tensor(tune)
train_data, val_data = tune[:13000], tune[13000:]


def get_batch(data):
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    offsets = ix[:, None] + torch.arange(block_size)
    return data[offsets], data[offsets + 1]


class SmoothedCrossEntropy(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes, self.smoothing = classes, smoothing

    def forward(self, logits, target):
        log_probs = logits.log_softmax(dim=-1)
        share = torch.full_like(log_probs, self.smoothing)
        share.scatter_(-1, target.unsqueeze(-1), 1.0 - self.smoothing)
        return -(share * log_probs).sum(dim=-1).mean()


class TuneModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(vocab_size, n_embd)
        self.time = nn.Embedding(block_size, n_embd)
        self.ln_1, self.ln_2, self.ln_f = (nn.LayerNorm(n_embd) for _ in range(3))
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 2 * n_embd), nn.GELU(), nn.Linear(2 * n_embd, n_embd))
        self.lm_head = nn.Linear(n_embd, vocab_size)
        self.register_buffer("mask", torch.triu(torch.ones(block_size, block_size, dtype=torch.bool), 1))

    def forward(self, idx):
        x = self.note(idx) + self.time.weight
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=self.mask, need_weights=False)[0]
        x = x + self.mlp(self.ln_2(x))
        return self.lm_head(self.ln_f(x))


def lr_at(it):
    if it < warmup:
        return learning_rate * (it + 1) / warmup
    return learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup))))


model = TuneModel()
criterion = SmoothedCrossEntropy(vocab_size, smoothing)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(it)
    x, y = get_batch(train_data)
    loss = criterion(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 20 == 0 or it == max_iters - 1:
        model.eval()
        with torch.no_grad():
            x, y = get_batch(val_data)
            logits = model(x)
            plain = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            accuracy = (logits.argmax(-1) == y).float().mean()
        model.train()
        print(f"iter {it} loss {loss.item():.4f} val cross-entropy {plain:.4f} accuracy {accuracy:.3f}")
