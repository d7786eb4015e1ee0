"""Multi-label tagging: one sigmoid per tag, BCE with logits, a threshold on the probabilities, micro F1 from counts."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

NUM_TAGS, NUM_FEATURES = 8, 30


def synthesize(n, directions, gen):
    x = torch.randn(n, NUM_FEATURES, generator=gen)
    score = x @ directions.T + 0.3 * torch.randn(n, NUM_TAGS, generator=gen)
    return x, (score > 0.5).float()  # several tags at once, or none


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(NUM_FEATURES, 64)
        self.norm = nn.LayerNorm(64)
        self.tags = nn.Linear(64, NUM_TAGS)

    def forward(self, x):
        return self.tags(torch.relu(self.norm(self.hidden(x))))


def f1_from_counts(tp, fp, fn):
    return 2 * tp / max(2 * tp + fp + fn, 1)


def evaluate(model, loader):
    tp = fp = fn = 0
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            predicted = model(x).sigmoid() > 0.5
            truth = y.bool()
            tp += (predicted & truth).sum().item()
            fp += (predicted & ~truth).sum().item()
            fn += (~predicted & truth).sum().item()
    model.train()
    return f1_from_counts(tp, fp, fn)


def main():
    torch.manual_seed(90)
    gen = torch.Generator().manual_seed(90)
    directions = nn.functional.normalize(torch.randn(NUM_TAGS, NUM_FEATURES, generator=gen), dim=1)
    train = DataLoader(TensorDataset(*synthesize(1600, directions, gen)), batch_size=64, shuffle=True)
    val = DataLoader(TensorDataset(*synthesize(330, directions, gen)), batch_size=100)
    model = Tagger()
    head, rest = [], []
    for name, p in model.named_parameters():
        (head if name.startswith("tags") else rest).append(p)
    optimizer = torch.optim.NAdam([{"params": rest, "lr": 2e-3}, {"params": head, "lr": 4e-3}])
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        total = 0.0
        for x, y in train:
            loss = bce(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch} bce {total / 1600:.4f} val micro-F1 {evaluate(model, val):.3f}")


if __name__ == "__main__":
    main()
