"""Train an encoder from scratch with layer-wise learning rates on synthetic intents."""
import argparse
import random
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class TrainConfig:
    vocab: int = 48
    intents: int = 6
    length: int = 10
    dim: int = 32
    layers: int = 3
    freeze_first: int = 2
    base_lr: float = 2e-3
    layer_decay: float = 0.9
    steps: int = 90
    batch: int = 32
    seed: int = 37


class IntentModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.place = nn.Embedding(cfg.length, cfg.dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(cfg.dim, 4, 2 * cfg.dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(cfg.layers)
        )
        self.norm = nn.LayerNorm(cfg.dim)
        self.intent = nn.Linear(cfg.dim, cfg.intents)

    def forward(self, ids):
        h = self.embed(ids) + self.place.weight
        for layer in self.layers:
            h = layer(h)
        return self.intent(self.norm(h).mean(dim=1))


def parameter_groups(model, cfg):
    """The lower a layer, the smaller its learning rate."""
    groups = [{"params": [*model.norm.parameters(), *model.intent.parameters()], "lr": cfg.base_lr}]
    for depth, layer in enumerate(reversed(model.layers)):
        groups.append({"params": list(layer.parameters()), "lr": cfg.base_lr * cfg.layer_decay ** (depth + 1)})
    bottom = cfg.base_lr * cfg.layer_decay ** (cfg.layers + 1)
    groups.append({"params": [*model.embed.parameters(), *model.place.parameters()], "lr": bottom})
    return groups


def utterances(cfg):
    """The intent is the sum of the two special words (0..2 and 3..5), modulo the number of intents."""
    ids = torch.randint(6, cfg.vocab, (cfg.batch, cfg.length))
    intent = torch.randint(0, cfg.intents, (cfg.batch,))
    rows = torch.arange(cfg.batch)
    slots = torch.stack([torch.randperm(cfg.length)[:4] for _ in range(cfg.batch)])
    for column in (0, 1):
        ids[rows, slots[:, column]] = intent % 3
    for column in (2, 3):
        ids[rows, slots[:, column]] = 3 + intent // 3
    return ids, intent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=TrainConfig.steps)
    cfg = TrainConfig(steps=parser.parse_args().steps)
    random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)

    model = IntentModel(cfg)
    for layer in model.layers[: cfg.freeze_first]:
        layer.requires_grad_(False)
    optimizer = torch.optim.AdamW(parameter_groups(model, cfg), weight_decay=0.0)
    loss_fn = nn.CrossEntropyLoss()
    model.train()
    for step in range(1, cfg.steps + 1):
        ids, intent = utterances(cfg)
        loss = loss_fn(model(ids), intent)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            model.eval()
            with torch.no_grad():
                ids, intent = utterances(cfg)
                accuracy = (model(ids).argmax(-1) == intent).float().mean().item()
            model.train()
            print(f"step {step} loss {loss.item():.4f} accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
