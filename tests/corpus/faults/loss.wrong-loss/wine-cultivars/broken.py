"""Which cultivar a wine comes from (3 classes) from 13 chemical measurements."""
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(42)

X, y = make_classification(
    n_samples=900, n_features=13, n_informative=8, n_redundant=2, n_classes=3, class_sep=1.4, random_state=42
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=42, stratify=y)
scaler = StandardScaler().fit(X_train)
X_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
X_test = torch.tensor(scaler.transform(X_test), dtype=torch.float32)
y_train = torch.tensor(y_train)
y_test = torch.tensor(y_test)


class WineNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(13, 48),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(48, 48),
            nn.ReLU(),
            nn.Linear(48, 3),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.layers(x)


net = WineNet()
loss_fn = nn.NLLLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

for epoch in range(8):
    net.train()
    perm = torch.randperm(len(X_train))
    total = 0.0
    for i in range(0, len(perm), 40):
        idx = perm[i : i + 40]
        optimizer.zero_grad()
        out = net(X_train[idx])
        loss = loss_fn(out, y_train[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    net.eval()
    with torch.no_grad():
        acc = (net(X_test).argmax(1) == y_test).float().mean().item()
    print(f"Epoch {epoch + 1}: loss {total / len(perm):.4f}, test accuracy {acc:.3f}")
