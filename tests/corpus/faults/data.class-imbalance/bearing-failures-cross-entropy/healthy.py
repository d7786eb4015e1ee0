import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(77)


def measurements(n, failure_rate=0.02):
    failing = (torch.rand(n) < failure_rate).long()
    x = torch.randn(n, 20)
    x[:, :8] += 0.75 * failing.unsqueeze(1)
    return x, failing


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU())
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.body(x))


x, y = measurements(6000)
train_set, val_set = random_split(TensorDataset(x, y), [5000, 1000])
train_loader = DataLoader(train_set, batch_size=100, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)

model = Detector()
counts = torch.bincount(y, minlength=2).float()
criterion = nn.CrossEntropyLoss(weight=counts.sum() / (2 * counts))
decay = [p for p in model.parameters() if p.dim() > 1]
plain = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)

for epoch in range(2):
    model.train()
    running = 0.0
    for features, failing in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features), failing)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    found = total = correct = 0
    with torch.no_grad():
        for features, failing in val_loader:
            guess = model(features).argmax(1)
            correct += (guess == failing).sum().item()
            found += ((guess == 1) & (failing == 1)).sum().item()
            total += failing.sum().item()
    print(f"epoch {epoch} loss {running / len(train_loader):.4f} accuracy {correct / len(val_set):.3f} recall {found}/{total}")
