"""Matches the points of two views: scores softmaxed over rows and over columns, the product is the match probability.
Pairs of small clouds in batches of eight, jitter drawn in the loader's workers, positives weighted up as they are rare."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

POINTS, WIDTH = 12, 8


class Views(Dataset):
    """View two holds the points of view one in another order, moved and noisy, each with its descriptor."""

    def __init__(self, size, seed, train):
        self.size, self.seed, self.train = size, seed, train
        self.words = np.random.default_rng(99).normal(0, 1, (60, WIDTH)).astype(np.float32)
        self.rng = None

    def __len__(self):
        return self.size

    def noise(self, i):
        if not self.train:
            return np.random.default_rng((self.seed, i, 1))
        if self.rng is None:
            info = get_worker_info()
            self.rng = np.random.default_rng(info.seed if info else self.seed)
        return self.rng

    def __getitem__(self, i):
        fixed = np.random.default_rng((self.seed, i))
        words = fixed.permutation(60)[:POINTS]
        order = fixed.permutation(POINTS)
        noise = self.noise(i)
        first = self.words[words] + 0.3 * noise.normal(0, 1, (POINTS, WIDTH))
        second = self.words[words[order]] + 0.3 * noise.normal(0, 1, (POINTS, WIDTH))
        match = np.zeros((POINTS, POINTS), np.float32)
        match[order, np.arange(POINTS)] = 1.0
        return torch.from_numpy(first).float(), torch.from_numpy(second).float(), torch.from_numpy(match)


class Matcher(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lift, self.norm = nn.Linear(WIDTH, width, bias=False), nn.BatchNorm1d(width)
        self.out = nn.Linear(width, width)
        self.sharpness = nn.Parameter(torch.tensor(1.0))

    def describe(self, points):
        h = self.norm(self.lift(points).transpose(1, 2)).transpose(1, 2)
        return self.out(h.relu())

    def forward(self, first, second):
        a, b = self.describe(first), self.describe(second)
        scores = torch.einsum("bid,bjd->bij", a, b) / a.size(-1) ** 0.5 * self.sharpness.exp()
        return scores.log_softmax(dim=1) + scores.log_softmax(dim=2)


def match_loss(log_match, truth):
    found = -(log_match * truth).sum((1, 2)) / truth.sum((1, 2))
    missed = -torch.log1p(-log_match.exp().clamp(max=1 - 1e-6)) * (1 - truth)
    return (found + missed.sum((1, 2)) / (1 - truth).sum((1, 2))).mean()


def main():
    torch.manual_seed(6)
    np.random.seed(6)
    train = DataLoader(Views(480, 1, True), batch_size=8, shuffle=True, num_workers=2, drop_last=True)
    valid = DataLoader(Views(64, 2, False), batch_size=32)
    model = Matcher()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        model.train()
        total = 0.0
        for first, second, truth in train:
            optimizer.zero_grad()
            loss = match_loss(model(first, second), truth)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = torch.cat([(model(a, b).argmax(1) == t.argmax(1)).float().mean(1) for a, b, t in valid]).mean()
        print(f"epoch {epoch}: loss {total / len(train):.3f}, matched {right.item():.3f}")


if __name__ == "__main__":
    main()
