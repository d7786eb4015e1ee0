"""Read the code at one place of a message. Sequence-first encoder with a learned position table."""

import torch
import torch.nn as nn

torch.manual_seed(12)
torch.use_deterministic_algorithms(True)

LENGTH, WIDTH, VALUES = 6, 36, 10


def draw(n):
    x = torch.randint(0, VALUES, (LENGTH, n))
    return x, (x[2] >= VALUES // 2).long()


class Comparer(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Embedding(VALUES, WIDTH)
        self.place = nn.Parameter(torch.randn(1, 64, WIDTH) * 0.3)
        enc = nn.TransformerEncoderLayer(WIDTH, nhead=3, dim_feedforward=72, dropout=0.0, norm_first=True)
        self.encoder = nn.TransformerEncoder(enc, num_layers=2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, ids):
        h = self.value(ids)
        h = h + self.place[:, : h.size(1)]
        return self.out(self.encoder(h).mean(dim=0))


def run(model, steps=110, batch=32):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    val_x, val_y = draw(256)
    for step in range(1, steps + 1):
        x, y = draw(batch)
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 22 == 0:
            model.eval()
            with torch.no_grad():
                acc = torch.cat([model(c) for c in val_x.split(batch, dim=1)]).argmax(1).eq(val_y).float().mean()
            model.train()
            print(f"[{step}] loss={loss.item():.3f} acc={acc.item():.3f}")


run(Comparer())
