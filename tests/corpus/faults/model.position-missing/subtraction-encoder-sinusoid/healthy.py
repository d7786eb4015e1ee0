"""Two-digit subtraction as classification: "4 7 - 1 9" -> 28. TransformerEncoder with fixed sinusoids."""
import math
import random
from argparse import ArgumentParser, Namespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, random_split

MINUS, READ = 10, 11


def all_problems() -> TensorDataset:
    rows, answers = [], []
    for a in range(100):
        for b in range(0, 100, 3):
            rows.append([READ, a // 10, a % 10, MINUS, b // 10, b % 10])
            answers.append(0 if a < b else 1 if a - b < 20 else 2)
    return TensorDataset(torch.tensor(rows), torch.tensor(answers))


class Sinusoids(nn.Module):
    def __init__(self, dim: int, max_len: int = 128) -> None:
        super().__init__()
        angle = torch.arange(max_len).unsqueeze(1) * torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(max_len, dim)
        table[:, 0::2] = angle.sin()
        table[:, 1::2] = angle.cos()
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        return x.add(self.table[: x.size(1)])


class Calculator(nn.Module):
    def __init__(self, dim: int, heads: int, depth: int) -> None:
        super().__init__()
        self.dim = dim
        self.symbols = nn.Embedding(12, dim)
        self.position = Sinusoids(dim)
        block = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.answer = nn.Linear(dim, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.symbols(tokens)
        x = self.position(x)
        return self.answer(self.blocks(x)[:, 0])


def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    good, count = 0, 0
    with torch.no_grad():
        for tokens, answer in loader:
            good += int((model(tokens).argmax(-1) == answer).sum())
            count += len(answer)
    return good / count


def train(opts: Namespace) -> None:
    torch.manual_seed(opts.seed)
    np.random.seed(opts.seed)
    random.seed(opts.seed)
    data = all_problems()
    train_set, test_set = random_split(data, [len(data) - 400, 400])
    train_loader = DataLoader(train_set, batch_size=opts.batch, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=200)
    model = Calculator(opts.dim, opts.heads, opts.depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, opts.lr, total_steps=opts.epochs * len(train_loader))
    criterion = nn.CrossEntropyLoss()
    for epoch in range(opts.epochs):
        model.train()
        losses = []
        for tokens, answer in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens), answer)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} accuracy {accuracy(model, test_loader):.3f}")


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=40)
    train(parser.parse_args())
