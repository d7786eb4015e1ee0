"""Sequence classification with nn.TransformerEncoder: which of four marker tokens dominates a row."""
import argparse
from dataclasses import asdict, dataclass, fields

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    vocab: int = 16
    seq_len: int = 16
    d_model: int = 32
    nhead: int = 4
    layers: int = 2
    dropout: float = 0.05
    batch_size: int = 32
    lr: float = 2e-3
    epochs: int = 2
    train_size: int = 1600
    val_size: int = 256
    seed: int = 21


def build_config() -> Config:
    parser = argparse.ArgumentParser()
    for f in fields(Config):
        parser.add_argument(f"--{f.name}", type=f.type, default=f.default)
    return Config(**vars(parser.parse_args()))


def build_data(cfg: Config, n: int, gen: torch.Generator) -> TensorDataset:
    """Label: which of four marker tokens occurs most often in the row."""
    seq = torch.randint(4, cfg.vocab, (n, cfg.seq_len), generator=gen)
    label = torch.randint(0, 4, (n,), generator=gen)
    for row in range(n):
        where = torch.randperm(cfg.seq_len, generator=gen)[:4]
        seq[row, where[:3]] = label[row]
        seq[row, where[3]] = torch.randint(0, 4, (1,), generator=gen)
    return TensorDataset(seq, label)


class Classifier(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.d_model)
        self.pos = nn.Parameter(torch.randn(1, cfg.seq_len, cfg.d_model) * 0.02)
        layer = nn.TransformerEncoderLayer(
            cfg.d_model, cfg.nhead, 4 * cfg.d_model, cfg.dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, cfg.layers, norm=nn.LayerNorm(cfg.d_model), enable_nested_tensor=False
        )
        self.head = nn.Linear(cfg.d_model, 4)

    def forward(self, seq: torch.Tensor) -> torch.Tensor:
        h = self.encoder(self.tok(seq) + self.pos)
        return self.head(h.mean(dim=1))


@torch.no_grad()
def validate(model: nn.Module, loader: DataLoader, criterion: nn.Module) -> tuple[float, float]:
    model.eval()
    loss_sum, hits, count = 0.0, 0, 0
    for seq, label in loader:
        logits = model(seq)
        loss_sum += criterion(logits, label).item() * len(label)
        hits += (logits.argmax(-1) == label).sum().item()
        count += len(label)
    model.train()
    return loss_sum / count, hits / count


def train(cfg: Config) -> None:
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    train_loader = DataLoader(build_data(cfg, cfg.train_size, gen), cfg.batch_size, shuffle=True, generator=gen)
    val_loader = DataLoader(build_data(cfg, cfg.val_size, gen), cfg.batch_size)

    model = Classifier(cfg)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    step = 0
    for epoch in range(cfg.epochs):
        for seq, label in train_loader:
            loss = criterion(model(seq), label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"step {step:4d} loss {loss.item():.4f}")
            step += 1
        val_loss, val_acc = validate(model, val_loader, criterion)
        print(f"epoch {epoch}: val loss {val_loss:.4f}, val accuracy {val_acc:.3f}")


if __name__ == "__main__":
    config = build_config()
    print(asdict(config))
    train(config)
