"""Find the class of a padded event log: SDPA encoder with learned queries, padded batches."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)

N_EVENTS, N_CLASSES, MAX_LEN = 30, 5, 18


def build(n):
    lengths = torch.randint(10, MAX_LEN + 1, (n,))
    events = torch.randint(1, N_EVENTS, (n, MAX_LEN))
    labels = torch.randint(0, N_CLASSES, (n,))
    # events 25..29 are the telling ones: a log of class c holds several of 25 + c and no other
    events = torch.where(events >= 25, events - 20, events)
    telling = torch.rand(n, MAX_LEN) < 0.25
    telling[:, 0] = True
    events = torch.where(telling, (25 + labels)[:, None], events)
    keep = torch.arange(MAX_LEN)[None, :] < lengths[:, None]
    events = events.masked_fill(~keep, 0)
    return TensorDataset(events, keep.long(), labels)


class SelfAttention(nn.Module):
    def __init__(self, d, n_head):
        super().__init__()
        self.n_head = n_head
        self.to_q = nn.Linear(d, d, bias=False)
        self.to_kv = nn.Linear(d, 2 * d, bias=False)
        self.to_out = nn.Linear(d, d)

    def split(self, t):
        b, n, d = t.shape
        return t.reshape(b, n, self.n_head, d // self.n_head).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        k, v = self.to_kv(x).chunk(2, dim=-1)
        out = F.scaled_dot_product_attention(self.split(self.to_q(x)), self.split(k), self.split(v), attn_mask=mask)
        return self.to_out(out.permute(0, 2, 1, 3).flatten(2))


class LogEncoder(nn.Module):
    def __init__(self, d=32, n_head=4, n_layer=2):
        super().__init__()
        self.event = nn.Embedding(N_EVENTS, d)
        self.place = nn.Parameter(torch.randn(MAX_LEN, d) * 0.1)
        self.attn = nn.ModuleList(SelfAttention(d, n_head) for _ in range(n_layer))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(n_layer))
        self.final = nn.LayerNorm(d)
        self.classify = nn.Linear(d, N_CLASSES)

    def forward(self, events, attention_mask):
        mask = attention_mask[:, None, None, :].bool()
        x = self.event(events) + self.place
        for norm, attn in zip(self.norms, self.attn):
            x = x + attn(norm(x), mask)
        return self.classify(self.final(x[:, 0]))


train = DataLoader(build(1280), batch_size=40, shuffle=True)
dev = DataLoader(build(200), batch_size=100)
net = LogEncoder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=3 * len(train), eta_min=1e-4)

step = 0
for epoch in range(3):
    net.train()
    for events, attention_mask, labels in train:
        loss = F.cross_entropy(net(events, attention_mask), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 12 == 0:
            print(f"{step:4d}  loss {loss.item():.3f}")
        step += 1
    net.eval()
    with torch.no_grad():
        good = sum((net(e, m).argmax(-1) == y).sum().item() for e, m, y in dev)
    print(f"epoch {epoch}: dev accuracy {good / 200:.3f}")
