"""Credit default from applicant data; weight decay on the matrices only."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(150)
torch.manual_seed(150)


def applicants(n):
    x = np.random.normal(size=(n, 15))
    risk = 1.2 * x[:, 0] - 0.9 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3] - 0.2
    default = (np.random.rand(n) < 1 / (1 + np.exp(-1.5 * risk))).astype(np.float32)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.from_numpy(default))


class CreditNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(15, 48), nn.Linear(48, 48)])
        self.logit = nn.Linear(48, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.leaky_relu(layer(x), 0.1)
        return self.logit(x)[:, 0]


train_loader = DataLoader(applicants(1500), batch_size=50, shuffle=True)
x_test, y_test = applicants(500).tensors
model = CreditNet()
matrices = [p for n, p in model.named_parameters() if n.endswith("weight")]
biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
groups = [{"params": matrices, "weight_decay": 0.02}, {"params": biases, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(4):
    model.train()
    losses = []
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        auc = roc_auc_score(y_test.numpy(), model(x_test).numpy())
    print(f"epoch {epoch} loss {np.mean(losses):.4f} test AUC {auc:.3f}")
