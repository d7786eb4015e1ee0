"""InfoNCE inside one category at a time. Every batch holds a single class on purpose: within-class negatives are the hard ones."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class ProductShots(Dataset):
    """Two noisy views of each product; products of one category look alike."""

    def __init__(self, per_category=48, categories=6, dim=32, seed=0):
        g = torch.Generator().manual_seed(seed)
        base = torch.randn(categories, 1, dim, generator=g)
        self.items = (base + 0.8 * torch.randn(categories, per_category, dim, generator=g)).flatten(0, 1) / 1.3
        self.category = torch.arange(categories).repeat_interleave(per_category)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        clean = self.items[i]
        view1 = clean + 0.4 * torch.randn_like(clean)
        view2 = clean + 0.4 * torch.randn_like(clean)
        return view1, view2, self.category[i]


class OneCategoryBatches(Sampler):
    def __init__(self, category, batch_size, seed):
        self.groups = [torch.where(category == c)[0].tolist() for c in category.unique()]
        self.batch_size, self.rng = batch_size, random.Random(seed)

    def __len__(self):
        return sum(len(g) // self.batch_size for g in self.groups)

    def __iter__(self):
        batches = []
        for group in self.groups:
            members = self.rng.sample(group, len(group))
            batches += [members[i : i + self.batch_size] for i in range(0, len(members), self.batch_size)]
        self.rng.shuffle(batches)
        return iter(batches)


class Encoder(nn.Module):
    def __init__(self, d_in=32, d_out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 64), nn.ReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def info_nce(a, b, temperature):
    scores = a @ b.T / temperature
    targets = torch.arange(len(a))  # the partner is on the diagonal
    return 0.5 * (F.cross_entropy(scores, targets) + F.cross_entropy(scores.T, targets))


def main():
    torch.manual_seed(12)
    dataset = ProductShots()
    loader = DataLoader(dataset, batch_sampler=OneCategoryBatches(dataset.category, 24, seed=12))
    encoder = Encoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
    for epoch in range(10):
        losses, top1 = [], []
        for v1, v2, category in loader:
            assert len(category.unique()) == 1
            z1, z2 = encoder(v1), encoder(v2)
            loss = info_nce(z1, z2, temperature=0.2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            top1.append((z1.detach() @ z2.detach().T).argmax(1).eq(torch.arange(len(z1))).float().mean().item())
        print(f"epoch {epoch} nce {sum(losses) / len(losses):.3f} retrieval {sum(top1) / len(top1):.2f}")


if __name__ == "__main__":
    main()
