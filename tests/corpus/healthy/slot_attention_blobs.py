"""Slot attention: the softmax runs over the slots, so that slots compete for pixels; the weights are then normalised over pixels."""
import torch
import torch.nn.functional as F
from torch import nn


def blobs(n, g, size=12):
    """Two bright squares of different brightness per image; the target is the sorted pair of brightnesses."""
    images = 0.05 * torch.randn(n, 1, size, size, generator=g)
    level = 0.5 + 1.5 * torch.rand(n, 2, generator=g)
    for i in range(n):
        y = torch.randint(0, size - 4, (2,), generator=g)
        x = torch.tensor([0, size // 2]) + torch.randint(0, size // 2 - 3, (2,), generator=g)
        for j in range(2):
            images[i, 0, y[j] : y[j] + 4, x[j] : x[j] + 4] += level[i, j]
    return images, level.sort(dim=1).values


class SlotAttention(nn.Module):
    def __init__(self, num_slots, dim, rounds=2):
        super().__init__()
        self.rounds, self.scale = rounds, dim**-0.5
        self.start = nn.Parameter(torch.randn(1, num_slots, dim) * dim**-0.5)
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.gru = nn.GRUCell(dim, dim)
        self.norm_in, self.norm_slots = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, pixels):
        pixels = self.norm_in(pixels)
        k, v = self.k(pixels), self.v(pixels)
        slots = self.start.expand(pixels.size(0), -1, -1)
        for _ in range(self.rounds):
            q = self.q(self.norm_slots(slots)) * self.scale
            share = torch.einsum("bsd,bpd->bsp", q, k).softmax(dim=1)
            share = share / (share.sum(dim=2, keepdim=True) + 1e-6)
            update = torch.einsum("bsp,bpd->bsd", share, v)
            slots = self.gru(update.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
        return slots


class BlobReader(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, dim, 3, padding=1), nn.ReLU(), nn.Conv2d(dim, dim, 3, padding=1))
        self.place = nn.Linear(2, dim)
        grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 12), torch.linspace(-1, 1, 12), indexing="ij"), dim=-1)
        self.register_buffer("grid", grid.flatten(0, 1))
        self.slots = SlotAttention(3, dim)
        self.read = nn.Sequential(nn.Linear(3 * dim, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, images):
        pixels = self.conv(images).flatten(2).transpose(1, 2) + self.place(self.grid)
        return self.read(self.slots(pixels).flatten(1))


def main():
    torch.manual_seed(14)
    g = torch.Generator().manual_seed(14)
    model = BlobReader()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(70):
        images, level = blobs(24, g)
        loss = F.mse_loss(model(images), level)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 14 == 0:
            print(f"step {step} mse {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        images, level = blobs(64, g)
        print(f"test mse {F.mse_loss(model(images), level).item():.4f}")


if __name__ == "__main__":
    main()
