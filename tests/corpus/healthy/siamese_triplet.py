"""Siamese encoder with a triplet margin loss; a share of triplets reaches exactly zero loss as training goes on."""
import torch
import torch.nn as nn


class TripletSampler:
    def __init__(self, identities, dim, noise, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.centres = torch.randn(identities, dim, generator=self.gen)
        self.noise = noise

    def observe(self, ids):
        c = self.centres[ids]
        return c + self.noise * torch.randn(c.shape, generator=self.gen)

    def draw(self, n):
        anchor = torch.randint(0, len(self.centres), (n,), generator=self.gen)
        hop = torch.randint(1, len(self.centres), (n,), generator=self.gen)
        negative = (anchor + hop) % len(self.centres)
        return self.observe(anchor), self.observe(anchor), self.observe(negative)


class Tower(nn.Module):
    def __init__(self, dim, out=12):
        super().__init__()
        self.l1 = nn.Linear(dim, 48)
        self.l2 = nn.Linear(48, out)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x)))


torch.manual_seed(19)
sampler = TripletSampler(identities=25, dim=20, noise=0.9, seed=19)
tower = Tower(20)
optimizer = torch.optim.Adam(tower.parameters(), lr=2e-3)
criterion = nn.TripletMarginLoss(margin=1.0)

first = last = None
for step in range(150):
    anchor, positive, negative = sampler.draw(64)
    # the three calls share one set of weights
    za, zp, zn = tower(anchor), tower(positive), tower(negative)
    loss = criterion(za, zp, zn)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 0:
        first = loss.item()
    last = loss.item()
    if step % 30 == 0:
        with torch.no_grad():
            gap = (za - zn).norm(dim=1) - (za - zp).norm(dim=1)
        print(f"step {step:3d} loss {loss.item():.3f} satisfied {(gap > 1.0).float().mean().item():.2f}")
print(f"loss {first:.3f} -> {last:.3f}")
