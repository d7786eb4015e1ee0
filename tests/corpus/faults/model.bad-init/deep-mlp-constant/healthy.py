"""Wine-like tabular classification with a small MLP and its own weight initialisation."""
import numpy as np
import torch
from torch import nn

np.random.seed(23)
torch.manual_seed(23)


def make_table(rows, features=13, classes=3):
    centres = np.random.normal(size=(classes, features))
    labels = np.random.randint(0, classes, size=rows)
    table = centres[labels] + np.random.normal(size=(rows, features))
    table[:, 0] *= table[:, 1]
    return table.astype(np.float32), labels


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)


table, labels = make_table(1500)
train_x, test_x = table[:1200], table[1200:]
mu, sigma = train_x.mean(axis=0), train_x.std(axis=0)
train_x = torch.from_numpy((train_x - mu) / sigma)
test_x = torch.from_numpy((test_x - mu) / sigma)
train_y, test_y = torch.from_numpy(labels[:1200]), torch.from_numpy(labels[1200:])

network = nn.Sequential(
    nn.Linear(13, 32),
    nn.ReLU(),
    nn.Linear(32, 32),
    nn.ReLU(),
    nn.Linear(32, 3),
)
network.apply(init_weights)
nn.init.normal_(network[-1].weight, std=0.1)

loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)

for epoch in range(4):
    network.train()
    shuffled = torch.randperm(len(train_x))
    losses = []
    for first in range(0, len(shuffled), 50):
        batch = shuffled[first : first + 50]
        loss = loss_fn(network(train_x[batch]), train_y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    network.eval()
    with torch.no_grad():
        accuracy = (network(test_x).argmax(dim=1) == test_y).float().mean().item()
    print(f"epoch {epoch + 1}  loss {np.mean(losses):.4f}  test accuracy {accuracy:.3f}")
