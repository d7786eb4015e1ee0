"""Fraud detection, 6 % positives: the loss carries pos_weight and the metric is recall/precision, not accuracy."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2024)


def transactions(n, rate=0.06):
    is_fraud = (torch.rand(n) < rate).float()
    x = torch.randn(n, 16)
    # fraud shifts several weak features a little; none of them settles it alone
    x[:, :6] += 0.9 * is_fraud.unsqueeze(1) * torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    return x, is_fraud


x_train, y_train = transactions(4000)
x_val, y_val = transactions(1000)
centre, spread = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - centre) / spread, (x_val - centre) / spread

positives = y_train.sum()
pos_weight = (len(y_train) - positives) / positives
print(f"{int(positives)} of {len(y_train)} are fraud, pos_weight {pos_weight:.1f}")

net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=128, shuffle=True)


def report(epoch, train_loss):
    net.eval()
    with torch.no_grad():
        flagged = torch.sigmoid(net(x_val)) > 0.5
    net.train()
    caught = (flagged & (y_val == 1)).sum().item()
    recall = caught / int(y_val.sum())
    precision = caught / max(int(flagged.sum()), 1)
    print(f"epoch {epoch} weighted loss {train_loss:.3f} recall {recall:.2f} precision {precision:.2f}")


for epoch in range(5):
    running = torch.zeros(())
    for features, target in loader:
        logit = net(features)
        loss = criterion(logit, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.detach() * len(target)
    report(epoch, running.item() / len(x_train))
