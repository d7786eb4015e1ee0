"""Sort digits with a small encoder-decoder built from nn.MultiheadAttention."""
import torch
from torch import nn

torch.manual_seed(21)
BOS, EOS, PAD = 20, 21, 22
VOCAB = 23
SRC_LEN = 8


def sample(n, generator):
    src = torch.randint(0, 20, (n, SRC_LEN), generator=generator)
    ordered = src.sort(dim=1).values
    keep = torch.randint(5, SRC_LEN + 1, (n, 1), generator=generator)
    # targets stop after `keep` smallest digits, which the source announces in its first slot
    tgt = torch.full((n, SRC_LEN + 2), PAD)
    tgt[:, 0] = BOS
    column = torch.arange(SRC_LEN)
    tgt[:, 1:-1] = torch.where(column < keep, ordered, PAD)
    tgt.scatter_(1, keep + 1, EOS)
    return torch.cat([keep, src], dim=1), tgt


class FeedForward(nn.Sequential):
    def __init__(self, dim):
        super().__init__(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = FeedForward(dim)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = FeedForward(dim)
        self.n1, self.n2, self.n3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x, memory, mask):
        h = self.n1(x)
        x = x + self.self_attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        x = x + self.cross_attn(self.n2(x), memory, memory, need_weights=False)[0]
        return x + self.ff(self.n3(x))


def subsequent_mask(size):
    full = torch.full((size, size), float("-inf"))
    return torch.tril(full, diagonal=-1)


class SortNet(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.src_pos = nn.Parameter(torch.randn(SRC_LEN + 1, dim) * 0.1)
        self.tgt_pos = nn.Parameter(torch.randn(SRC_LEN + 1, dim) * 0.1)
        self.encoder = EncoderLayer(dim, heads)
        self.decoder = nn.ModuleList([DecoderLayer(dim, heads) for _ in range(2)])
        self.memory_norm, self.out_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, src, tgt_in):
        memory = self.memory_norm(self.encoder(self.embed(src) + self.src_pos))
        x = self.embed(tgt_in) + self.tgt_pos[: tgt_in.size(1)]
        mask = subsequent_mask(tgt_in.size(1)).to(x.device)
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return self.out(self.out_norm(x))


def run():
    data_rng = torch.Generator().manual_seed(77)
    model = SortNet()
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
    opt = torch.optim.RAdam(model.parameters(), lr=3e-3)
    val_src, val_tgt = sample(128, data_rng)
    for step in range(1, 91):
        src, tgt = sample(48, data_rng)
        logits = model(src, tgt[:, :-1])
        loss = loss_fn(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 15 == 0:
            model.eval()
            with torch.no_grad():
                val_logits = model(val_src, val_tgt[:, :-1])
                val = loss_fn(val_logits.reshape(-1, VOCAB), val_tgt[:, 1:].reshape(-1))
            model.train()
            print(f"[{step:3d}] loss {loss.item():.3f}  val {val.item():.3f}")


run()
