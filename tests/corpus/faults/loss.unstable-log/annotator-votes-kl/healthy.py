"""Learn the distribution of annotators' votes with a hand-written Kullback-Leibler divergence."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

OPTIONS = 4
ANNOTATORS = 120


class Votes(Dataset):
    def __init__(self, items, rng, truth):
        self.features = rng.normal(size=(items, 10)).astype(np.float32)
        logits = 0.32 * self.features @ truth
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        counts = np.stack([rng.multinomial(ANNOTATORS, row) for row in p])
        self.votes = (counts / ANNOTATORS).astype(np.float32)

    def __len__(self):
        return len(self.votes)

    def __getitem__(self, i):
        return self.features[i], self.votes[i]


class VoteModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, OPTIONS))

    def forward(self, x):
        return torch.log_softmax(self.body(x), dim=-1)


def divergence(log_p, votes):
    """KL(votes || p), averaged over the batch."""
    return (torch.xlogy(votes, votes) - votes * log_p).sum(dim=-1).mean()


def main():
    np.random.seed(16)
    torch.manual_seed(16)
    rng = np.random.default_rng(16)
    truth = rng.normal(size=(10, OPTIONS))
    train = DataLoader(Votes(1600, rng, truth), batch_size=20, shuffle=True)
    valid = DataLoader(Votes(200, rng, truth), batch_size=100)
    model = VoteModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (features, votes) in enumerate(train):
        optimizer.zero_grad()
        loss = divergence(model(features), votes)
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step} divergence {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        agree = [(model(x).argmax(-1) == v.argmax(-1)).float().mean().item() for x, v in valid]
    print(f"agreement with the majority {np.mean(agree):.3f}")


main()
