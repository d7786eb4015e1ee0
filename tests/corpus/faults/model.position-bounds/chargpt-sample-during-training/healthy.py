"""Character model of a small made-up text, with a sample printed now and then."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1234)

block_size = 24
batch_size = 24
max_iters = 81
eval_interval = 40
learning_rate = 3e-3
n_embd, n_head, n_layer = 32, 4, 2

subjects = ["the cat", "a dog", "the old man", "my friend", "a bird", "one child", "her uncle", "the miller", "a fox", "no one"]
verbs = ["sees", "likes", "follows", "finds", "paints", "sells", "forgets", "loses"]
objects = ["the house", "a tree", "the river", "some bread", "old coins", "a long letter", "the road", "blue glass"]
words = []
for i in range(600):
    a, b, c = torch.randint(0, 40, (3,)).tolist()
    words.append(f"{subjects[a % 10]} {verbs[b % 8]} {objects[c % 8]}.\n")
text = "".join(words)
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
cut = int(0.9 * len(data))
splits = {"train": data[:cut], "val": data[cut:]}


def get_batch(split):
    d = splits[split]
    ix = torch.randint(len(d) - block_size - 1, (batch_size,)).tolist()
    x = torch.stack([d[i : i + block_size] for i in ix])
    y = torch.stack([d[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


def sinusoid(length, dim):
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    return torch.cat([angle.sin(), angle.cos()], dim=1)


class CausalLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        h = self.ln1(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        x = x + self.attn(h, h, h, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class CharGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(chars), n_embd)
        self.register_buffer("pe", sinusoid(block_size, n_embd))
        self.layers = nn.Sequential(*[CausalLayer() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, len(chars))

    def forward(self, idx):
        x = self.embed(idx) + self.pe[: idx.size(1)]
        return self.lm_head(self.ln_f(self.layers(x)))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        self.eval()
        for _ in range(max_new_tokens):
            logits = self(idx[:, -block_size:])
            probs = F.softmax(logits[:, -1], dim=-1)
            idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
        self.train()
        return idx


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    x, y = get_batch("val")
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    model.train()
    return loss.item()


model = CharGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0)
for it in range(max_iters):
    xb, yb = get_batch("train")
    loss = F.cross_entropy(model(xb).flatten(0, 1), yb.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print(f"iter {it}: loss {loss.item():.4f}")
    if it % eval_interval == 0 and it > 0:
        print(f"iter {it}: val loss {estimate_loss(model):.4f}")
        sample = model.generate(data[None, :1], 40)[0].tolist()
        print(repr("".join(chars[i] for i in sample)))
