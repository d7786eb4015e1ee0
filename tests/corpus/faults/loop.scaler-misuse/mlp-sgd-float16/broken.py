"""Mixed-precision MLP that tells apart four overlapping Gaussian clouds."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(606)

centres = 0.5 * torch.randn(4, 24)
labels = torch.arange(4).repeat(300)
points = centres[labels] + torch.randn(len(labels), 24)
points = (points - points.mean(0)) / points.std(0)
train_part, test_part = random_split(TensorDataset(points, labels), [960, 240])
train_loader = DataLoader(train_part, batch_size=32, shuffle=True)
test_loader = DataLoader(test_part, batch_size=120)

net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)

for epoch in range(4):
    net.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            output = net(x)
            loss = loss_fn(output, y)
        scaler.scale(loss).backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    hits = 0
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        for x, y in test_loader:
            hits += (net(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {hits / len(test_part):.3f}")
