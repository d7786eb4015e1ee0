"""GPT with learned positions on a bracket language; batches drawn at random."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

config = {
    "block": 32, "batch": 16, "dim": 48, "heads": 4, "layers": 2,
    "lr": 3e-3, "weight_decay": 0.1, "iters": 90, "warmup": 10, "seed": 71,
}
torch.manual_seed(config["seed"])

PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
SYMBOLS = list(PAIRS) + list(PAIRS.values()) + ["."]


def bracket_text(length):
    """Balanced brackets: an opener or the matching closer of the innermost one, dots when empty."""
    out, stack = [], []
    coins = torch.rand(length)
    picks = torch.randint(0, 4, (length,))
    for coin, pick in zip(coins.tolist(), picks.tolist()):
        if stack and (coin < 0.6 or len(stack) == 3):
            out.append(PAIRS[stack.pop()])
        elif coin < 0.95:
            stack.append(list(PAIRS)[pick])
            out.append(stack[-1])
        else:
            out.append(".")
    return torch.tensor([SYMBOLS.index(c) for c in out])


ids = bracket_text(24_000)
parts = {"train": ids[:21_000], "val": ids[21_000:]}


def batch(part):
    src = parts[part]
    at = torch.randint(0, len(src) - config["block"] - 1, (config["batch"],))
    rows = torch.stack([src[i:i + config["block"] + 1] for i in at.tolist()])
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


class Attn(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.inp = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.inp(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        scores = scores + torch.full((t, t), float("-inf")).triu(1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(dim), Attn(dim, heads)
        self.n2, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GPT(nn.Module):
    def __init__(self, vocab, c):
        super().__init__()
        self.tokens = nn.Embedding(vocab, c["dim"])
        self.positions = nn.Embedding(c["block"], c["dim"])
        self.layers = nn.ModuleList([Layer(c["dim"], c["heads"]) for _ in range(c["layers"])])
        self.norm = nn.LayerNorm(c["dim"])
        self.head = nn.Linear(c["dim"], vocab, bias=False)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.08)

    def forward(self, x):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


def lm_loss(model, part):
    x, y = batch(part)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


model = GPT(len(SYMBOLS), config)
groups = [{"params": model.parameters(), "weight_decay": config["weight_decay"]}]
opt = torch.optim.AdamW(groups, lr=config["lr"], betas=(0.9, 0.95))
warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=config["warmup"])
cool = torch.optim.lr_scheduler.CosineAnnealingLR(
    opt, T_max=config["iters"] - config["warmup"], eta_min=config["lr"] / 10
)
schedule = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cool], milestones=[config["warmup"]])

for it in range(config["iters"]):
    opt.zero_grad(set_to_none=True)
    loss = lm_loss(model, "train")
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    schedule.step()
    if it % 15 == 0 or it == config["iters"] - 1:
        model.eval()
        with torch.no_grad():
            val = sum(lm_loss(model, "val").item() for _ in range(4)) / 4
        model.train()
        print(f"it {it:3d}  train {loss.item():.4f}  val {val:.4f}")
