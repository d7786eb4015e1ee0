"""ALiBi decoder: there is no position embedding; the order reaches the model as a linear bias on the scores."""
import torch
from torch import Tensor, nn


def alibi_slopes(heads: int) -> Tensor:
    return torch.tensor([2.0 ** (-8.0 * (i + 1) / heads) for i in range(heads)])


def alibi_bias(heads: int, length: int) -> Tensor:
    pos = torch.arange(length)
    distance = (pos[None, :] - pos[:, None]).float()  # key minus query, <= 0 in the past
    bias = alibi_slopes(heads)[:, None, None] * distance
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    return bias.masked_fill(future, float("-inf"))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.merge = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, w = x.shape
        q, k, v = self.to_qkv(x).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        bias = alibi_bias(self.heads, n)
        out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.merge(out.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, vocab: int, width: int = 48, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.attn = nn.ModuleList([Attention(width, heads) for _ in range(depth)])
        self.mlp = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(depth)]
        )
        self.norms = nn.ModuleList([nn.RMSNorm(width) for _ in range(2 * depth + 1)])
        self.unembed = nn.Linear(width, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for i, (attn, mlp) in enumerate(zip(self.attn, self.mlp)):
            x = x + attn(self.norms[2 * i](x))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.unembed(self.norms[-1](x))


def second_order_text(n: int, length: int, vocab: int, g: torch.Generator) -> Tensor:
    """The next symbol is the sum of the last two, with a little noise."""
    seq = torch.randint(0, vocab, (n, length), generator=g)
    for t in range(2, length):
        rule = (seq[:, t - 1] + seq[:, t - 2]) % vocab
        keep = torch.rand(n, generator=g) < 0.9
        seq[:, t] = torch.where(keep, rule, seq[:, t])
    return seq


def main() -> None:
    torch.manual_seed(21)
    g = torch.Generator().manual_seed(21)
    vocab = 8
    model = Decoder(vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, 151):
        seq = second_order_text(24, 25, vocab, g)
        logits = model(seq[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, vocab), seq[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 30 == 0 or step == 1:
            print(f"step={step} loss={loss.item():.3f}")
    model.eval()
    with torch.inference_mode():
        longer = second_order_text(16, 41, vocab, g)
        hit = (model(longer[:, :-1]).argmax(-1) == longer[:, 1:])[:, 2:].float().mean().item()
    print(f"accuracy on sequences longer than any in training: {hit:.2f}")


if __name__ == "__main__":
    main()
