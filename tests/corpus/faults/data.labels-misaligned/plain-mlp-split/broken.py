"""Tabular classifier on three noisy clusters, plain training loop."""
import torch
import torch.nn as nn

torch.manual_seed(7)

N, D, K = 1800, 12, 3
EPOCHS = 3
BATCH = 64

# clusters
centers = torch.randn(K, D) * 0.8
labels = torch.arange(K).repeat(N // K)
features = centers[labels] + torch.randn(N, D)

perm = torch.randperm(N)
features = features[perm]
labels = labels[torch.randperm(N)]

n_train = 1400
x_train, y_train = features[:n_train], labels[:n_train]
x_val, y_val = features[n_train:], labels[n_train:]

# standardise with the training statistics
mean, std = x_train.mean(0), x_train.std(0)
x_train = (x_train - mean) / std
x_val = (x_val - mean) / std

model = nn.Sequential(
    nn.Linear(D, 48),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(48, 48),
    nn.ReLU(),
    nn.Linear(48, K),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

print(f"train {len(x_train)}  val {len(x_val)}  parameters {sum(p.numel() for p in model.parameters())}")

for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(n_train)
    running = 0.0
    for start in range(0, n_train, BATCH):
        idx = order[start:start + BATCH]
        optimizer.zero_grad()
        out = model(x_train[idx])
        loss = criterion(out, y_train[idx])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)

    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val).item()
        acc = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}  train loss {running / n_train:.4f}  val loss {val_loss:.4f}  val acc {acc:.3f}")
