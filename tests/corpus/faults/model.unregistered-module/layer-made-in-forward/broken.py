import torch
import torch.nn as nn

torch.manual_seed(14)


class Encoder(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.width = width
        self.last = nn.Linear(width, 3)

    def forward(self, x):
        h = torch.relu(self.first(x))
        middle = nn.Linear(self.width, self.width)
        h = torch.relu(middle(h))
        return self.last(h)


data = torch.randn(900, 9)
kind = (data[:, 0] > 0).long() + (data[:, 1] + data[:, 2] > 0).long()
net = Encoder(9, 32)
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(4):
    for rows in torch.randperm(900).split(45):
        opt.zero_grad()
        loss = loss_fn(net(data[rows]), kind[rows])
        loss.backward()
        opt.step()
    print("loss", loss.item())
