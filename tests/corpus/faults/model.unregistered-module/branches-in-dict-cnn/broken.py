import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)


def stripes(n):
    kind = torch.randint(0, 3, (n,))
    grid = torch.arange(16).float()
    phase, rate = torch.rand(n, 1, 1) * 6.28, 0.8 + torch.rand(n, 1, 1) * 0.6
    rows, cols = grid.view(1, 16, 1), grid.view(1, 1, 16)
    waves = torch.stack([(rate * a + phase).sin().expand(n, 16, 16) for a in (rows + 0 * cols, cols + 0 * rows, rows + cols)], 1)
    return waves[torch.arange(n), kind].unsqueeze(1) + 0.3 * torch.randn(n, 1, 16, 16), kind


class MultiScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = {}
        for k in (1, 3, 5):
            self.branches[f"k{k}"] = nn.Conv2d(1, 6, k, padding=k // 2)
        self.merge = nn.Conv2d(18, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = torch.cat([F.relu(conv(x)) for conv in self.branches.values()], dim=1)
        x = F.relu(self.merge(x)).mean((2, 3))
        return self.fc(x)


images, kinds = stripes(960)
net = MultiScale()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(3):
    for i in torch.randperm(960).split(48):
        loss = F.cross_entropy(net(images[i]), kinds[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, "loss", loss.item())
