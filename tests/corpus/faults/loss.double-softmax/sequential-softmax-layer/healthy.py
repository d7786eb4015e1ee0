"""Wine-like tabular data, six cultivars: nn.Sequential and RMSprop."""
import torch
from torch import nn

SEED = 90
torch.manual_seed(SEED)

num_features, num_classes = 13, 6
prototypes = torch.randn(num_classes, num_features)
scales = torch.rand(num_features) * 4 + 0.5
offsets = torch.randn(num_features) * 3


def collect(n):
    cultivar = torch.randint(num_classes, (n,))
    chemistry = prototypes[cultivar] + 0.9 * torch.randn(n, num_features)
    return chemistry * scales + offsets, cultivar


train_raw, train_y = collect(1500)
val_raw, val_y = collect(400)
mu, sd = train_raw.mean(dim=0), train_raw.std(dim=0)
train_x, val_x = (train_raw - mu) / sd, (val_raw - mu) / sd

classifier = nn.Sequential(
    nn.Linear(num_features, 40),
    nn.LeakyReLU(0.1),
    nn.Linear(40, 40),
    nn.LeakyReLU(0.1),
    nn.Linear(40, num_classes),
)
objective = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(classifier.parameters(), lr=2e-3)

batch = 50
history = []
for epoch in range(1, 4):
    classifier.train()
    permutation = torch.randperm(len(train_x))
    for start in range(0, len(train_x), batch):
        rows = permutation[start:start + batch]
        scores = classifier(train_x[rows])
        cost = objective(scores, train_y[rows])
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        history.append(cost.item())

    classifier.eval()
    with torch.no_grad():
        val_scores = classifier(val_x)
        val_cost = objective(val_scores, val_y).item()
        val_hits = (val_scores.argmax(dim=1) == val_y).sum().item()
    recent = sum(history[-10:]) / 10
    print(f"epoch {epoch}: recent train loss {recent:.4f}, val loss {val_cost:.4f}, right {val_hits}/{len(val_y)}")

print(f"loss went from {history[0]:.4f} to {history[-1]:.4f} in {len(history)} updates")
