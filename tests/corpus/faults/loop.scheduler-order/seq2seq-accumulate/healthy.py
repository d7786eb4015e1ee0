"""Sort short digit strings with an nn.Transformer; micro-batches, linear decay, everything in functions."""
import argparse

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR

DIGITS, START = 10, 10
LENGTH = 6


def get_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=70)
    parser.add_argument("--micro-batches", type=int, default=3)
    parser.add_argument("--micro-size", type=int, default=24)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--warmup", type=int, default=6)
    parser.add_argument("--seed", type=int, default=99)
    return parser.parse_args()


class Sorter(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embed = nn.Embedding(DIGITS + 1, d)
        self.place = nn.Parameter(torch.randn(LENGTH, d) * 0.2)
        self.core = nn.Transformer(d, 4, 1, 1, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(d, DIGITS)
        self.register_buffer("future", torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1))

    def forward(self, source, prefix):
        hidden = self.core(self.embed(source) + self.place, self.embed(prefix) + self.place, tgt_mask=self.future)
        return self.head(hidden)


def sample(n):
    source = torch.randint(0, DIGITS, (n, LENGTH))
    target = source.sort(dim=1).values
    prefix = torch.cat([torch.full((n, 1), START), target[:, :-1]], dim=1)
    return source, prefix, target


def make_schedule(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return max(0.05, (total - step) / (total - warmup))

    return LambdaLR(optimizer, factor)


def main():
    options = get_options()
    torch.manual_seed(options.seed)
    model = Sorter()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    scheduler = make_schedule(optimizer, options.warmup, options.updates)
    criterion = nn.CrossEntropyLoss()
    for update in range(options.updates):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        value = 0.0
        for _ in range(options.micro_batches):
            source, prefix, target = sample(options.micro_size)
            loss = criterion(model(source, prefix).reshape(-1, DIGITS), target.reshape(-1)) / options.micro_batches
            loss.backward()
            value += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if update % 10 == 9:
            model.eval()
            with torch.no_grad():
                source, prefix, target = sample(100)
                accuracy = (model(source, prefix).argmax(-1) == target).float().mean().item()
            rate = scheduler.get_last_lr()[0]
            print(f"update {update + 1} loss {value:.4f} digit accuracy {accuracy:.3f} lr {rate:.2e}")


if __name__ == "__main__":
    main()
