"""Character GPT with batches drawn from one long string, in the manner of small public GPT trainers."""
import math
import random

import torch
import torch.nn as nn
from torch.nn import functional as F

batch_size = 16
block_size = 24
max_iters = 240
eval_interval = 30
eval_iters = 5
learning_rate = 4e-3
n_embd = 48
n_head = 4
n_layer = 2
num_words = 110

torch.manual_seed(1337)
random.seed(1337)


def write_text(num_words):
    draw = random.Random(7)
    syllables = [a + b for a in "bdklmnrst" for b in "aeiou"]
    nouns = ["".join(draw.sample(syllables, 2)) for _ in range(40)]
    verbs = [draw.choice(syllables) + draw.choice(["nd", "st", "rk"]) + "s" for _ in range(30)]
    adjectives = [draw.choice(syllables) + draw.choice(["lly", "ful", "ish"]) for _ in range(20)]
    parts, count = [], 0
    while count < num_words:
        sentence = ["the", draw.choice(adjectives), draw.choice(nouns), draw.choice(verbs), "a", draw.choice(nouns)]
        count += len(sentence)
        parts.append(" ".join(sentence) + ".")
    return " ".join(parts)


text = write_text(num_words)
chars = sorted(set("abcdefghijklmnopqrstuvwxyz .") | set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
n = int(0.8 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    source = train_data if split == "train" else val_data
    ix = torch.randint(len(source) - block_size - 1, (batch_size,))
    x = torch.stack([source[i : i + block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + block_size + 1] for i in ix])
    return x, y


@torch.no_grad()
def estimate_loss(model):
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            losses[k] = model(*get_batch(split))[1].item()
        out[split] = losses.mean().item()
    model.train()
    return out


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.ln2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02 if isinstance(module, nn.Embedding) else 1 / math.sqrt(module.in_features))
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        logits = self.head(self.ln_f(self.blocks(x)))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = GPT(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0)
for it in range(max_iters + 1):
    if it % eval_interval == 0:
        losses = estimate_loss(model)
        print(f"step {it}: train {losses['train']:.3f}, val {losses['val']:.3f}")
    xb, yb = get_batch("train")
    _, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
