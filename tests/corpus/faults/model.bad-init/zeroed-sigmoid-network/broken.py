import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)


class TwoLayer(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.w1 = nn.Parameter(torch.zeros(hidden, inputs))
        self.b1 = nn.Parameter(torch.zeros(hidden))
        self.w2 = nn.Parameter(torch.zeros(classes, hidden))
        self.b2 = nn.Parameter(torch.zeros(classes))

    def forward(self, x):
        return F.linear(torch.sigmoid(F.linear(x, self.w1, self.b1)), self.w2, self.b2)


x = torch.randn(1000, 6)
y = (x[:, 0] * x[:, 1] > 0).long() + 2 * (x[:, 2] > 0).long()
model = TwoLayer(6, 40, 4)
opt = torch.optim.Adam(model.parameters(), lr=0.03)
for epoch in range(4):
    for i in torch.randperm(1000).split(50):
        loss = F.cross_entropy(model(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
