"""Hospital stay from lab values: MLP on a table of patient records, batches drawn at random."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(777)
LAB_VALUES = 30
RECORDS = 60
STEPS, BATCH = 120, 48


def patients(n):
    x = torch.randn(n, LAB_VALUES)
    risk = x[:, 0] + 0.7 * x[:, 1] - 0.7 * x[:, 2]
    return x, (risk + 0.8 * torch.randn(n) > 0).long()


x_train, y_train = patients(RECORDS)
x_val, y_val = patients(500)

net = nn.Sequential(nn.Linear(LAB_VALUES, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
recent = []
for step in range(1, STEPS + 1):
    net.train()
    rows = torch.randint(RECORDS, (BATCH,))
    loss = F.cross_entropy(net(x_train[rows]), y_train[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if step % 10 == 0:
        net.eval()
        with torch.no_grad():
            scores = net(x_val)
            val_loss = F.cross_entropy(scores, y_val).item()
            accuracy = (scores.argmax(1) == y_val).float().mean().item()
        print(f"step {step} train {sum(recent) / len(recent):.4f} val {val_loss:.4f} accuracy {accuracy:.3f}")
        recent.clear()
