"""Stochastic weight averaging: the averaged copy gets no gradients; its BatchNorm statistics are re-estimated at the end."""
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(29)


def dataset(n, prototypes):
    y = torch.randint(0, len(prototypes), (n,))
    x = prototypes[y] * torch.empty(n, 1).uniform_(0.6, 1.4) + 1.1 * torch.randn(n, prototypes.shape[1])
    return TensorDataset(x / 1.4, y)


def block(i, o):
    return nn.Sequential(nn.Linear(i, o, bias=False), nn.BatchNorm1d(o), nn.ReLU())


@torch.no_grad()
def score(model, loader):
    model.eval()
    hits = n = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
        n += len(y)
    return hits / n


prototypes = torch.randn(6, 25)
train_loader = DataLoader(dataset(1600, prototypes), batch_size=80, shuffle=True)
test_loader = DataLoader(dataset(400, prototypes), batch_size=200)

model = nn.Sequential(block(25, 64), block(64, 64), nn.Linear(64, 6))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
criterion = nn.CrossEntropyLoss()
SWA_START = 3

for epoch in range(7):
    model.train()
    mean_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        mean_loss += loss.item() / len(train_loader)
    if epoch >= SWA_START:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    print(f"epoch {epoch} loss {mean_loss:.3f} test {score(model, test_loader):.3f} lr {optimizer.param_groups[0]['lr']:.3f}")

update_bn(train_loader, swa_model)
print(f"averaged model test {score(swa_model, test_loader):.3f}")
