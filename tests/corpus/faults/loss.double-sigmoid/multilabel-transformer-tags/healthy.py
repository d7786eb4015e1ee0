"""Multi-label tagging of recipes: encoder over ingredients, one probability per tag."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Setup:
    ingredients: int = 50
    per_recipe: int = 9
    tags: int = 6
    width: int = 32
    epochs: int = 4
    batch: int = 40
    lr: float = 3e-3
    seed: int = 57


class Recipes(Dataset):
    """A tag holds when at least one of the ingredients that carry it is present."""

    def __init__(self, setup, size, generator):
        self.items = torch.stack(
            [torch.randperm(setup.ingredients, generator=generator)[: setup.per_recipe] for _ in range(size)]
        )
        carriers = torch.arange(setup.ingredients) % 13
        self.tags = torch.stack([(carriers[self.items] == t).any(dim=1) for t in range(setup.tags)], dim=1).float()

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i], self.tags[i]


class TagModel(nn.Module):
    def __init__(self, setup):
        super().__init__()
        self.embed = nn.Embedding(setup.ingredients, setup.width)
        self.queries = nn.Parameter(torch.randn(setup.tags, setup.width) * 0.3)
        self.attend = nn.MultiheadAttention(setup.width, 2, batch_first=True)
        self.norm = nn.LayerNorm(setup.width)
        self.score = nn.Linear(setup.width, 1)

    def forward(self, items):
        words = self.embed(items)
        queries = self.queries.expand(len(items), -1, -1)
        read, _ = self.attend(queries, words, words, need_weights=False)
        scores = self.score(self.norm(queries + read)).squeeze(-1)
        return scores


def run(setup):
    torch.manual_seed(setup.seed)
    generator = torch.Generator().manual_seed(setup.seed)
    train = DataLoader(Recipes(setup, 1200, generator), setup.batch, shuffle=True)
    valid = DataLoader(Recipes(setup, 240, generator), setup.batch)
    model = TagModel(setup)
    optimizer = torch.optim.Adam(model.parameters(), lr=setup.lr)
    for epoch in range(setup.epochs):
        model.train()
        losses = []
        for items, tags in train:
            loss = F.binary_cross_entropy_with_logits(model(items), tags)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            held = [F.binary_cross_entropy_with_logits(model(items), tags).item() for items, tags in valid]
        print(f"epoch {epoch} train {sum(losses) / len(losses):.4f} valid {sum(held) / len(held):.4f}")


if __name__ == "__main__":
    run(Setup())
