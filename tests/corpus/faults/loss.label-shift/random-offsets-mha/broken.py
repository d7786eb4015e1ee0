"""GPT with nn.MultiheadAttention blocks; random windows from one long token stream."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 99
VOCAB, CTX, WIDTH, HEADS, DEPTH = 32, 28, 48, 4, 2
STEPS, BATCH, PEAK_LR, WARMUP = 80, 24, 3e-3, 8

torch.manual_seed(SEED)


def build_stream(length, seed):
    """Second-order structure: the successor depends on the current token and on a slowly changing mode."""
    rules = torch.Generator().manual_seed(12)
    successor = torch.stack([torch.randperm(VOCAB, generator=rules) for _ in range(2)])
    g = torch.Generator().manual_seed(seed)
    flips = (torch.rand(length, generator=g) < 0.02).cumsum(0) % 2
    noisy = torch.rand(length, generator=g) < 0.15
    uniform = torch.randint(0, VOCAB, (length,), generator=g)
    stream = torch.empty(length, dtype=torch.long)
    token = 0
    for i in range(length):
        token = int(uniform[i]) if noisy[i] else int(successor[flips[i], token])
        stream[i] = token
    return stream


train_stream = build_stream(16_000, seed=1)
valid_stream = build_stream(2_000, seed=2)


def draw(stream, count):
    starts = torch.randint(0, len(stream) - CTX - 1, (count,))
    index = starts[:, None] + torch.arange(CTX)
    return stream[index], stream[index]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mha = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH))

    def forward(self, x, mask):
        h = self.ln1(x)
        h, _ = self.mha(h, h, h, attn_mask=mask, need_weights=False, is_causal=True)
        x = x + h
        return x + self.ff(self.ln2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, WIDTH)
        self.pos = nn.Embedding(CTX, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.ln = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, VOCAB)
        self.register_buffer("mask", torch.ones(CTX, CTX, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        t = tokens.size(1)
        x = self.emb(tokens) + self.pos.weight[:t]
        for block in self.blocks:
            x = block(x, self.mask[:t, :t])
        return self.out(self.ln(x))


model = LM()
opt = torch.optim.AdamW(model.parameters(), lr=PEAK_LR, weight_decay=0.0)
sched = torch.optim.lr_scheduler.SequentialLR(
    opt,
    [
        torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=WARMUP),
        torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS - WARMUP, eta_min=PEAK_LR / 10),
    ],
    milestones=[WARMUP],
)

for step in range(STEPS):
    x, y = draw(train_stream, BATCH)
    logits = model(x)
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), y.reshape(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 10 == 0 or step == STEPS - 1:
        print(f"step {step:3d} | loss {loss.item():.4f} | lr {opt.param_groups[0]['lr']:.2e}")

model.eval()
with torch.no_grad():
    x, y = draw(valid_stream, 64)
    print(f"valid loss {F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item():.4f}")
