"""Decoder-only model that learns to echo a prompt after a separator; variable-length rows."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

torch.manual_seed(314)

PAD_TOKEN, BOS, SEP, EOS = 0, 1, 2, 3
FIRST_WORD, VOCAB = 4, 28
CONTEXT = 24


def echo_rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(n):
        k = int(torch.randint(5, 11, (1,), generator=g))
        start = int(torch.randint(FIRST_WORD, VOCAB, (1,), generator=g))
        stride = int(torch.randint(1, 4, (1,), generator=g))
        prompt = [FIRST_WORD + (start + stride * j) % (VOCAB - FIRST_WORD) for j in range(k)]
        noisy = [int(torch.randint(FIRST_WORD, VOCAB, (1,), generator=g)) if j % 4 == 3 else w for j, w in enumerate(prompt)]
        rows.append(torch.tensor([BOS, *noisy, SEP, *noisy, EOS]))
    return rows


def collate(rows):
    width = max(len(r) for r in rows)
    out = torch.full((len(rows), width), PAD_TOKEN)
    for i, r in enumerate(rows):
        out[i, : len(r)] = r
    return out


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, dim=-1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class EchoModel(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, dim)
        self.wpe = nn.Embedding(CONTEXT, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        return self.head(self.ln(self.blocks(x)))


loader = DataLoader(echo_rows(768, seed=5), batch_size=32, shuffle=True, collate_fn=collate)
dev = collate(echo_rows(128, seed=6))

model = EchoModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.85)

for epoch in range(4):
    model.train()
    for i, ids in enumerate(loader):
        inputs, targets = ids[:, :-1], ids[:, 1:]
        logits = model(inputs)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=PAD_TOKEN)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i % 12 == 0:
            print(f"epoch {epoch} it {i:2d} loss {loss.item():.4f}")
    scheduler.step()

    model.eval()
    with torch.no_grad():
        guess = model(dev[:, :-1]).argmax(-1)
    real = dev[:, 1:] != PAD_TOKEN
    accuracy = (guess == dev[:, 1:])[real].float().mean()
    print(f"epoch {epoch} dev token accuracy {accuracy:.3f}")
