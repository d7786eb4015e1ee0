"""Autoencoder with a classifier on the code: reconstruct a curve and name its family."""
import itertools

import torch
from torch import nn

torch.manual_seed(44)
POINTS, FAMILIES = 32, 4


def curves(n):
    t = torch.linspace(0, 1, POINTS)
    family = torch.randint(FAMILIES, (n,))
    a = 0.5 + torch.rand(n, 1)
    shapes = torch.stack(
        [
            torch.sin(2 * torch.pi * t).expand(n, -1),
            torch.sin(4 * torch.pi * t).expand(n, -1),
            (2 * t - 1).expand(n, -1),
            (4 * (t - 0.5).abs() - 1).expand(n, -1),
        ],
        dim=1,
    )
    curve = a * shapes[torch.arange(n), family] + 0.2 * torch.randn(n, POINTS)
    return curve / 0.7, family


encoder = nn.Sequential(nn.Linear(POINTS, 48), nn.ReLU(), nn.Linear(48, 8))
decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, POINTS))
classifier = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, FAMILIES))
parameters = itertools.chain(encoder.parameters(), decoder.parameters(), classifier.parameters())
optimizer = torch.optim.Adam(parameters, lr=3e-3)
reconstruction, naming = nn.MSELoss(), nn.CrossEntropyLoss()

for step in range(1, 121):
    curve, family = curves(48)
    code = encoder(curve)
    loss_r = reconstruction(decoder(code), curve)
    loss_n = naming(classifier(code), family)
    loss = loss_r + 0.5 * loss_n
    for module in (encoder, decoder, classifier):
        module.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        with torch.no_grad():
            curve, family = curves(400)
            accuracy = (classifier(encoder(curve)).argmax(1) == family).float().mean().item()
        print(f"step {step} reconstruction {loss_r.item():.4f} naming {loss_n.item():.4f} accuracy {accuracy:.3f}")
