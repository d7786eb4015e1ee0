"""Feature-tokenizer transformer for loan default prediction, trained with Accelerate."""
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    n_num: int = 8
    cardinalities: tuple = (5, 7, 3)
    d_model: int = 32
    n_heads: int = 4
    n_layers: int = 2
    batch_size: int = 64
    epochs: int = 4
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    seed: int = 11


class LoanTable(Dataset):
    def __init__(self, n, cfg, seed):
        g = torch.Generator().manual_seed(seed)
        self.num = torch.randn(n, cfg.n_num, generator=g)
        self.cat = torch.stack([torch.randint(0, c, (n,), generator=g) for c in cfg.cardinalities], 1)
        score = 1.5 * self.num[:, 0] - self.num[:, 1] * self.num[:, 2] + (self.cat[:, 1] > 3).float() * 2 - 1
        self.label = (score + 0.3 * torch.randn(n, generator=g) > 0).float()

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"num": self.num[i], "cat": self.cat[i], "label": self.label[i]}


class FTTransformer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.num_weight = nn.Parameter(torch.randn(cfg.n_num, cfg.d_model) * 0.2)
        self.num_bias = nn.Parameter(torch.randn(cfg.n_num, cfg.d_model) * 0.2)
        self.cat_tables = nn.ModuleList(nn.Embedding(c, cfg.d_model) for c in cfg.cardinalities)
        self.cls = nn.Parameter(torch.randn(1, 1, cfg.d_model) * 0.2)
        layer = nn.TransformerEncoderLayer(
            cfg.d_model, cfg.n_heads, 2 * cfg.d_model, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, cfg.n_layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(cfg.d_model), nn.ReLU(), nn.Linear(cfg.d_model, 1))

    def forward(self, num, cat):
        tokens = [self.cls.expand(len(num), -1, -1), num.unsqueeze(-1) * self.num_weight + self.num_bias]
        tokens.append(torch.stack([table(cat[:, j]) for j, table in enumerate(self.cat_tables)], dim=1))
        return self.head(self.encoder(torch.cat(tokens, dim=1))[:, 0]).squeeze(-1)


def param_groups(model, weight_decay):
    decay, plain = [], []
    for name, p in model.named_parameters():
        (decay if p.ndim == 2 and "num_" not in name and "cat_tables" not in name else plain).append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def evaluate(accelerator, model, loader):
    model.eval()
    hits, seen = 0, 0
    for batch in loader:
        with torch.no_grad():
            logits = model(batch["num"], batch["cat"])
        logits, labels = accelerator.gather_for_metrics((logits, batch["label"]))
        hits += ((logits > 0).float() == labels).sum().item()
        seen += len(labels)
    return hits / seen


def main():
    cfg = Config()
    set_seed(cfg.seed)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(LoanTable(2048, cfg, 1), cfg.batch_size, shuffle=True)
    valid_loader = DataLoader(LoanTable(512, cfg, 2), 256)
    model = FTTransformer(cfg)
    optimizer = torch.optim.AdamW(param_groups(model, cfg.weight_decay), lr=cfg.learning_rate)
    model, optimizer, train_loader, valid_loader = accelerator.prepare(model, optimizer, train_loader, valid_loader)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for batch in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(batch["num"], batch["cat"]), batch["label"])
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        accuracy = evaluate(accelerator, model, valid_loader)
        accelerator.print(f"epoch {epoch}: train loss {total / len(train_loader):.4f}, valid acc {accuracy:.3f}")


if __name__ == "__main__":
    main()
