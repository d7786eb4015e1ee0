"""Decoder with RMSNorm and rotary positions, windows from a dataset, training wrapped in a class."""
from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class WindowDataset(Dataset):
    """Pairs (x, y) of consecutive windows over a token stream."""

    def __init__(self, stream: Tensor, length: int) -> None:
        self.stream, self.length = stream, length

    def __len__(self) -> int:
        return (len(self.stream) - 1) // self.length

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        start = i * self.length
        chunk = self.stream[start : start + self.length + 1]
        return chunk[:-1], chunk[1:]


def bigram_stream(n: int, vocab: int, seed: int) -> Tensor:
    table = torch.rand(vocab, vocab, generator=torch.Generator().manual_seed(31)).pow(16)
    table = table / table.sum(1, keepdim=True)
    edges = table.cumsum(1).tolist()
    u = torch.rand(n, generator=torch.Generator().manual_seed(seed)).tolist()
    tokens, current = [], 0
    for value in u:
        current = next((j for j, edge in enumerate(edges[current]) if value < edge), vocab - 1)
        tokens.append(current)
    return torch.tensor(tokens)


def rotate(x: Tensor) -> Tensor:
    t, d = x.shape[-2:]
    freq = 10000 ** (-torch.arange(0, d, 2, device=x.device) / d)
    angle = torch.arange(t, device=x.device)[:, None] * freq
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_f = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.gate, self.up = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(dim, 2 * dim, bias=False)
        self.down = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.wqkv(self.norm_a(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + self.wo(attended.transpose(1, 2).flatten(2))
        h = self.norm_f(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class TinyLlama(nn.Module):
    def __init__(self, vocab: int, dim: int = 48, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(depth)))
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.tokens(ids))))


class LanguageModelTrainer:
    def __init__(self, model: nn.Module, train: Dataset, valid: Dataset, lr: float) -> None:
        self.model = model
        self.train_loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
        self.valid_loader = DataLoader(valid, batch_size=32)
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim == 1]
        self.optimizer = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], lr=lr)

    def compute_loss(self, x: Tensor, y: Tensor) -> Tensor:
        logits = self.model(x)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())

    def train_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.compute_loss(x, y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.inference_mode()
    def validate(self) -> float:
        self.model.eval()
        weighted = [(self.compute_loss(x, y).item(), len(x)) for x, y in self.valid_loader]
        return sum(loss * n for loss, n in weighted) / sum(n for _, n in weighted)


def main() -> None:
    torch.manual_seed(1)
    vocab, length = 30, 24
    trainer = LanguageModelTrainer(
        TinyLlama(vocab),
        WindowDataset(bigram_stream(20_000, vocab, seed=2), length),
        WindowDataset(bigram_stream(2_000, vocab, seed=3), length),
        lr=2e-3,
    )
    for epoch in range(4):
        print(f"epoch {epoch}  train {trainer.train_epoch():.4f}  valid {trainer.validate():.4f}")


if __name__ == "__main__":
    main()
