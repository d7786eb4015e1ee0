import torch
import torch.nn as nn

torch.manual_seed(41)


def reset(m):
    if isinstance(m, nn.Linear):
        nn.init.zeros_(m.weight)
        nn.init.zeros_(m.bias)


points = torch.randn(1200, 2)
ring = (points.norm(dim=1) > 1.1).long()
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2)).apply(reset)
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(4):
    correct = 0
    for i in torch.randperm(1200).split(60):
        out = net(points[i])
        loss = nn.functional.cross_entropy(out, ring[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        correct += (out.argmax(1) == ring[i]).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {correct / 1200:.3f}")
