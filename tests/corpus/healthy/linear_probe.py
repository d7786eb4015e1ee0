"""Linear probe: how much does a random-feature encoder know? Features are computed once without a graph."""
import torch
from torch import nn

torch.manual_seed(10)


def spirals(n):
    label = torch.randint(0, 3, (n,))
    r = torch.rand(n) * 2 + 0.2
    a = 1.1 * r + label * 2.0944 + 0.6 * torch.randn(n)
    pts = torch.stack([r * a.cos(), r * a.sin()], dim=1)
    return pts, label


class RandomFourierEncoder(nn.Module):
    """Stands in for a pre-trained network; it is not trained here and not meant to be."""

    def __init__(self, dim=192, bandwidth=1.0):
        super().__init__()
        self.proj = nn.Linear(2, dim)
        nn.init.normal_(self.proj.weight, std=bandwidth)
        nn.init.uniform_(self.proj.bias, 0, 6.283)

    def forward(self, x):
        return 1.414 * torch.cos(self.proj(x))


@torch.no_grad()
def extract(encoder, x):
    encoder.eval()
    return encoder(x)


encoder = RandomFourierEncoder().requires_grad_(False)
x_train, y_train = spirals(1500)
x_test, y_test = spirals(500)
mu, sd = x_train.mean(0), x_train.std(0)
feats_train, feats_test = extract(encoder, (x_train - mu) / sd), extract(encoder, (x_test - mu) / sd)
print("features", tuple(feats_train.shape), "requires_grad", feats_train.requires_grad)

probe = nn.Linear(feats_train.shape[1], 3)
sgd = torch.optim.SGD(probe.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(6):
    perm = torch.randperm(len(feats_train))
    epoch_loss = 0.0
    for idx in perm.split(100):
        logits = probe(feats_train[idx])
        loss = criterion(logits, y_train[idx])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        epoch_loss += loss.item() * len(idx)
    with torch.no_grad():
        acc = (probe(feats_test).argmax(-1) == y_test).float().mean().item()
    print(f"epoch {epoch} loss {epoch_loss / len(feats_train):.4f} probe accuracy {acc:.3f}")
