"""Encoder classifier with a Trainer that builds its parameter groups by name, as BERT recipes do."""
import argparse
from typing import Dict, List

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EncoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        self.attention_norm = nn.LayerNorm(dim)
        self.expand = nn.Linear(dim, 2 * dim)
        self.contract = nn.Linear(2 * dim, dim)
        self.output_norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        attended, _ = self.attention(x, x, x, need_weights=False)
        x = self.attention_norm(x + attended)
        return self.output_norm(x + self.contract(torch.relu(self.expand(x))))


class TextClassifier(nn.Module):
    def __init__(self, vocab: int, length: int, classes: int, dim: int = 32, heads: int = 4, depth: int = 2):
        super().__init__()
        self.token_table = nn.Embedding(vocab, dim)
        self.position_table = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, dropout=0.1) for _ in range(depth))
        self.classifier = nn.Linear(dim, classes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.token_table(ids) + self.position_table(torch.arange(ids.size(1)))
        for block in self.blocks:
            hidden = block(hidden)
        return self.classifier(hidden.mean(dim=1))


class Trainer:
    def __init__(self, model: nn.Module, args: argparse.Namespace):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.AdamW(self.parameter_groups(), lr=args.lr)
        self.loss_function = nn.CrossEntropyLoss(label_smoothing=0.0)

    def parameter_groups(self) -> List[Dict]:
        excluded = ("bias", "norm.weight")
        decayed, plain = [], []
        for name, parameter in self.model.named_parameters():
            (plain if name.endswith(excluded) else decayed).append(parameter)
        return [
            {"params": decayed, "weight_decay": self.args.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]

    def train_epoch(self, loader: DataLoader) -> float:
        self.model.train()
        total = 0.0
        for ids, labels in loader:
            self.optimizer.zero_grad()
            loss = self.loss_function(self.model(ids), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
            self.optimizer.step()
            total += loss.item() * len(labels)
        return total / len(loader.dataset)

    @torch.no_grad()
    def accuracy(self, loader: DataLoader) -> float:
        self.model.eval()
        right = sum((self.model(ids).argmax(-1) == labels).sum().item() for ids, labels in loader)
        return right / len(loader.dataset)


def topic_data(n: int, vocab: int, length: int, classes: int) -> TensorDataset:
    """Every topic prefers its own slice of the vocabulary."""
    labels = torch.randint(0, classes, (n,))
    per_topic = vocab // classes
    topical = labels[:, None] * per_topic + torch.randint(0, per_topic, (n, length))
    anything = torch.randint(0, vocab, (n, length))
    ids = torch.where(torch.rand(n, length) < 0.4, topical, anything)
    return TensorDataset(ids, labels)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.2)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(29)
    vocab, length, classes = 48, 14, 4
    train_loader = DataLoader(topic_data(1200, vocab, length, classes), args.batch_size, shuffle=True)
    valid_loader = DataLoader(topic_data(400, vocab, length, classes), 100)
    trainer = Trainer(TextClassifier(vocab, length, classes), args)
    for epoch in range(args.epochs):
        loss = trainer.train_epoch(train_loader)
        print(f"epoch {epoch}: train loss {loss:.4f}, valid accuracy {trainer.accuracy(valid_loader):.3f}")


if __name__ == "__main__":
    main()
