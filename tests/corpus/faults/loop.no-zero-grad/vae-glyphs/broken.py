"""A small VAE on synthetic 12x12 glyphs."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2024)
np.random.seed(2024)

batch_size = 64
latent = 6
log_interval = 10


def glyphs(count, seed):
    rng = np.random.default_rng(seed)
    images = np.zeros((count, 12, 12), dtype=np.float32)
    for img in images:
        kind = rng.integers(3)
        r, c = rng.integers(1, 5, 2)
        size = rng.integers(4, 7)
        if kind == 0:
            img[r : r + size, c : c + size] = 1
        elif kind == 1:
            img[r : r + size, c + size // 2] = 1
            img[r + size // 2, c : c + size] = 1
        else:
            img[r, c : c + size] = img[r + size - 1, c : c + size] = 1
            img[r : r + size, c] = img[r : r + size, c + size - 1] = 1
    speckle = rng.random(images.shape) < 0.02
    return torch.from_numpy(np.where(speckle, 1 - images, images)).view(count, -1)


train_loader = DataLoader(TensorDataset(glyphs(1920, 1)), batch_size=batch_size, shuffle=True)
test_loader = DataLoader(TensorDataset(glyphs(256, 2)), batch_size=batch_size)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(144, 128)
        self.fc21 = nn.Linear(128, latent)
        self.fc22 = nn.Linear(128, latent)
        self.fc3 = nn.Linear(latent, 128)
        self.fc4 = nn.Linear(128, 144)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def forward(self, x):
        mu, logvar = self.encode(x * 2 - 1)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)


def loss_function(logits, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / x.size(0)


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data,) in enumerate(train_loader):
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_loader.dataset)}]\tLoss: {loss.item():.4f}")
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader):.4f}")


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for (data,) in test_loader:
            recon, mu, logvar = model(data)
            test_loss += loss_function(recon, data, mu, logvar).item()
    print(f"====> Test set loss: {test_loss / len(test_loader):.4f}")


if __name__ == "__main__":
    for epoch in range(1, 5):
        train(epoch)
        test(epoch)
