import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset


def tiles(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 4, 16, 16, generator=g)
    x[torch.arange(n), y] += 0.6
    return TensorDataset((x - x.mean()) / x.std(), y)


class MixerLayer(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channel = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.token(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.n2(x))


class TileMixer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Conv2d(4, dim, 4, 4)
        self.layers = nn.Sequential(MixerLayer(16, dim), MixerLayer(16, dim))
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        return self.head(self.layers(x).mean(1))


def main(accum_iter=2, epochs=3, clip=1.0):
    torch.manual_seed(29)
    loader = DataLoader(tiles(640, 1), batch_size=16, shuffle=True, drop_last=True)
    model = TileMixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    scaler = GradScaler("cpu", init_scale=4096.0)

    for epoch in range(epochs):
        model.train()
        total = 0.0
        optimizer.zero_grad()
        for it, (x, y) in enumerate(loader):
            with autocast("cpu", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y) / accum_iter
            scaler.scale(loss).backward()
            total += loss.item() * accum_iter
            if (it + 1) % accum_iter == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), clip)
                scaler.step(optimizer)
                optimizer.zero_grad()
        scaler.update()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


main()
