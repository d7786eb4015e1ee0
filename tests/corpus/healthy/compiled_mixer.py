"""torch.compile around a small token mixer; the optimizer is built from the original module, which shares its parameters."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.over_tokens = nn.Sequential(nn.Linear(tokens, tokens * 2), nn.GELU(), nn.Linear(tokens * 2, tokens))
        self.over_dim = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))

    def forward(self, x):
        x = x + self.over_tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_dim(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, tokens=9, patch=16, dim=24, classes=4):
        super().__init__()
        self.embed = nn.Linear(patch, dim)
        self.blocks = nn.Sequential(*[MixerBlock(tokens, dim) for _ in range(2)])
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        patches = F.unfold(images, kernel_size=4, stride=4).transpose(1, 2)
        return self.head(self.blocks(self.embed(patches)).mean(1))


def quadrant_images(n, g):
    """A bright spot in one of four quadrants over noise."""
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 1, 12, 12, generator=g)
    row = torch.randint(0, 3, (n,), generator=g) + 6 * (y // 2)
    col = torch.randint(0, 3, (n,), generator=g) + 6 * (y % 2)
    for i in range(n):
        x[i, 0, row[i] : row[i] + 4, col[i] : col[i] + 4] += 2.0
    return x / 1.25, y


def main():
    torch.manual_seed(41)
    g = torch.Generator().manual_seed(41)
    model = Mixer()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(120):
        x, y = quadrant_images(32, g)
        loss = criterion(compiled(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == 119:
            print(f"step {step:3d} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        x, y = quadrant_images(200, torch.Generator().manual_seed(42))
        print(f"accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
