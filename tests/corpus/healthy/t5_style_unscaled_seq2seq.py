"""T5-style encoder-decoder: no division by sqrt(d_head), the query weights are drawn smaller instead; order comes from relative biases."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, PAD = 20, 40, 4, 0
D_HEAD = DIM // HEADS


def dense(d_in, d_out, std):
    layer = nn.Linear(d_in, d_out, bias=False)
    nn.init.normal_(layer.weight, std=std)
    return layer


class Attention(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.q = dense(DIM, DIM, (DIM * D_HEAD) ** -0.5)
        self.k, self.v, self.o = (dense(DIM, DIM, DIM**-0.5) for _ in range(3))
        self.table = nn.Embedding(17, HEADS) if bias else None
        if bias:
            nn.init.normal_(self.table.weight, std=0.3)

    def forward(self, x, source, hidden):
        def heads(y):
            return y.unflatten(-1, (HEADS, D_HEAD)).transpose(1, 2)

        q, k, v = heads(self.q(x)), heads(self.k(source)), heads(self.v(source))
        score = q @ k.transpose(-1, -2)
        if self.table is not None:
            i, j = torch.arange(x.size(1)), torch.arange(source.size(1))
            score = score + self.table((j[None] - i[:, None]).clamp(-8, 8) + 8).permute(2, 0, 1)
        score = score.masked_fill(hidden, torch.finfo(score.dtype).min)
        return self.o((score.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Stack(nn.Module):
    def __init__(self, depth, cross):
        super().__init__()
        self.self_attention = nn.ModuleList(Attention(True) for _ in range(depth))
        self.cross_attention = nn.ModuleList(Attention(False) for _ in range(depth if cross else 0))
        self.wi = nn.ModuleList(dense(DIM, 2 * DIM, DIM**-0.5) for _ in range(depth))
        self.wo = nn.ModuleList(dense(2 * DIM, DIM, (2 * DIM) ** -0.5) for _ in range(depth))
        self.norms = nn.ModuleList(nn.RMSNorm(DIM) for _ in range(depth * (3 if cross else 2) + 1))

    def forward(self, x, hidden, memory=None, memory_hidden=None):
        norm = iter(self.norms)
        for i in range(len(self.wi)):
            h = next(norm)(x)
            x = x + self.self_attention[i](h, h, hidden)
            if memory is not None:
                x = x + self.cross_attention[i](next(norm)(x), memory, memory_hidden)
            x = x + self.wo[i](F.relu(self.wi[i](next(norm)(x))))
        return next(norm)(x)


class Rewriter(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(VOCAB, DIM)
        self.encoder, self.decoder = Stack(2, False), Stack(2, True)
        self.lm_head = dense(DIM, VOCAB, DIM**-0.5)

    def forward(self, src, tgt):
        src_hidden = (src == PAD)[:, None, None, :]
        future = torch.ones(tgt.size(1), tgt.size(1)).triu(1).bool()
        memory = self.encoder(self.shared(src), src_hidden)
        return self.lm_head(self.decoder(self.shared(tgt), future, memory, src_hidden))


def batch(g, n=24, longest=10):
    """Target: the source with neighbours swapped, padded sources of any length."""
    src = torch.randint(2, VOCAB, (n, longest), generator=g)
    length = 2 * torch.randint(2, longest // 2 + 1, (n,), generator=g)
    src = src.masked_fill(torch.arange(longest) >= length[:, None], PAD)
    tgt = src.view(n, -1, 2).flip(-1).flatten(1)
    return src, F.pad(tgt, (1, 0), value=1)


def main():
    torch.manual_seed(30)
    g = torch.Generator().manual_seed(30)
    model = Rewriter()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(120):
        src, tgt = batch(g)
        loss = F.cross_entropy(model(src, tgt[:, :-1]).transpose(1, 2), tgt[:, 1:], ignore_index=PAD)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 0 or step == 119:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
