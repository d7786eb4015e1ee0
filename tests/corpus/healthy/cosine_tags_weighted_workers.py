"""Rare tags of short sound clips: cosine logits with a learned temperature, weighted positives, noise made in workers."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(90)
np.random.seed(90)
RATES = np.array([0.5, 0.3, 0.2, 0.1])


class Clips(Dataset):
    def __init__(self, n, seed, noisy):
        rng = np.random.default_rng(seed)
        self.tags = (rng.random((n, len(RATES))) < RATES).astype(np.float32)
        patterns = np.random.default_rng(0).normal(size=(len(RATES), 48))
        self.clips = (self.tags @ patterns + 0.5 * rng.normal(size=(n, 48))) / 1.3
        self.noisy = noisy
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, i):
        clip = self.clips[i]
        if self.noisy:
            clip = clip * self.rng.uniform(0.8, 1.2) + 0.3 * self.rng.normal(size=48)
        return torch.tensor(clip, dtype=torch.float32), torch.from_numpy(self.tags[i])


def own_stream(worker_id):
    info = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


class CosineTagger(nn.Module):
    def __init__(self, tags, dim=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, dim))
        self.prototypes = nn.Parameter(torch.randn(tags, dim) * 0.2)
        self.log_scale = nn.Parameter(torch.tensor(0.5))
        self.bias = nn.Parameter(torch.zeros(tags))

    def forward(self, clip):
        cosine = nn.functional.normalize(self.body(clip), dim=-1) @ nn.functional.normalize(self.prototypes, dim=-1).T
        return cosine * self.log_scale.exp() + self.bias


def main():
    train, valid = Clips(512, 1, True), Clips(128, 2, False)
    positives = torch.from_numpy(train.tags).sum(0)
    pos_weight = (len(train) - positives) / positives
    loader = DataLoader(train, 32, shuffle=True, num_workers=2, worker_init_fn=own_stream, persistent_workers=True)
    valid_loader = DataLoader(valid, 64)
    model = CosineTagger(len(RATES))
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for clip, tags in loader:
            optimizer.zero_grad()
            loss = criterion(model(clip), tags)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        found = missed = wrong = 0.0
        with torch.no_grad():
            for clip, tags in valid_loader:
                guess = (model(clip) > 0).float()
                found += (guess * tags).sum().item()
                missed += ((1 - guess) * tags).sum().item()
                wrong += (guess * (1 - tags)).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.3f} f1 {2 * found / (2 * found + missed + wrong):.3f}")


if __name__ == "__main__":
    main()
