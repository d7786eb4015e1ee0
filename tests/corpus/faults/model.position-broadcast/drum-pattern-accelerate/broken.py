"""Next-hit model for drum patterns, trained with Accelerate."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

BAR = 16
SYMBOLS = 10


class Drums(Dataset):
    """Each style has its own hit for every slot of the bar; patterns open with the style and contain a few wrong hits."""

    def __init__(self, count: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        book = torch.randint(4, SYMBOLS, (3, BAR), generator=torch.Generator().manual_seed(0))
        style = torch.randint(0, 3, (count,), generator=g)
        hits = book[style].repeat(1, 2)
        wrong = torch.rand(hits.shape, generator=g) < 0.1
        hits[wrong] = torch.randint(4, SYMBOLS, (int(wrong.sum()),), generator=g)
        self.rows = torch.cat([style[:, None], hits], dim=1)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"hits": self.rows[i, :-1], "next": self.rows[i, 1:]}


class CausalMixer(nn.Module):
    def __init__(self, d: int, h: int):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.ffn = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d))

    def forward(self, x, block):
        y = self.norm(x)
        x = x + self.attn(y, y, y, attn_mask=block, need_weights=False)[0]
        return x + self.ffn(x)


class DrumModel(nn.Module):
    def __init__(self, d: int = 36, h: int = 3, depth: int = 2, max_len: int = 64):
        super().__init__()
        self.hit = nn.Embedding(SYMBOLS, d)
        self.slot = nn.Embedding(max_len, d)
        self.mixers = nn.ModuleList(CausalMixer(d, h) for _ in range(depth))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, SYMBOLS)

    def forward(self, hits):
        b, t = hits.shape
        slots = torch.arange(t, device=hits.device).repeat_interleave(b).view(b, t)
        x = self.hit(hits) + self.slot(slots)
        block = torch.triu(torch.ones(t, t, device=hits.device, dtype=torch.bool), diagonal=1)
        for mixer in self.mixers:
            x = mixer(x, block)
        return self.head(self.norm(x))


def main():
    set_seed(13)
    accelerator = Accelerator(cpu=True)
    model = DrumModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    train = DataLoader(Drums(1200, 1), batch_size=24, shuffle=True, drop_last=True)
    valid = DataLoader(Drums(120, 2), batch_size=24)
    model, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    for epoch in range(2):
        model.train()
        for i, batch in enumerate(train):
            logits = model(batch["hits"])
            loss = F.cross_entropy(logits.permute(0, 2, 1), batch["next"])
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if i % 10 == 0:
                accelerator.print(f"epoch {epoch} batch {i} loss {loss.item():.3f}")
        model.eval()
        losses = []
        with torch.no_grad():
            for batch in valid:
                logits = model(batch["hits"])
                losses.append(F.cross_entropy(logits.permute(0, 2, 1), batch["next"]).item())
        accelerator.print(f"epoch {epoch} valid loss {sum(losses) / len(losses):.3f}")


if __name__ == "__main__":
    main()
