"""Translate written dates to ISO form with nn.Transformer, trained through Accelerate."""
import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
PAD, BOS, EOS = 0, 1, 2
ALPHABET = sorted(set("".join(MONTHS)) | set("0123456789- "))
CHAR = {c: i + 3 for i, c in enumerate(ALPHABET)}
VOCAB = len(CHAR) + 3


class Dates(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            day, month, year = (int(torch.randint(lo, hi, (1,), generator=g)) for lo, hi in ((1, 29), (0, 12), (60, 100)))
            text = f"{day} {MONTHS[month]} {year}"
            iso = f"{year}-{month + 1:02d}-{day:02d}"
            self.items.append(([CHAR[c] for c in text] + [EOS], [BOS] + [CHAR[c] for c in iso] + [EOS]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    def pad(rows):
        return nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD)

    return pad([s for s, _ in items]), pad([t for _, t in items])


class Translator(nn.Module):
    def __init__(self, d=48, heads=4, layers=2, max_len=16):
        super().__init__()
        self.d = d
        self.embed = nn.Embedding(VOCAB, d, padding_idx=PAD)
        pos = torch.arange(max_len)[:, None]
        freq = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * freq), torch.cos(pos * freq)
        self.register_buffer("pe", pe)
        nn.init.normal_(self.embed.weight, std=d**-0.5)
        self.transformer = nn.Transformer(d, heads, layers, layers, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.generator = nn.Linear(d, VOCAB)

    def encode_positions(self, ids):
        return self.embed(ids) * math.sqrt(self.d) + self.pe[: ids.size(1)]

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device), diagonal=1)
        out = self.transformer(
            self.encode_positions(src),
            self.encode_positions(tgt),
            tgt_mask=causal,
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return self.generator(out)


def main():
    set_seed(55)
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(Dates(960, 1), batch_size=32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Dates(128, 2), batch_size=64, collate_fn=collate)
    model = Translator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    model, optimizer, loader, val_loader = accelerator.prepare(model, optimizer, loader, val_loader)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    for epoch in range(4):
        model.train()
        for step, (src, tgt) in enumerate(loader):
            logits = model(src, tgt[:, :-1])
            loss = criterion(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 10 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        model.eval()
        right = total = 0
        with torch.no_grad():
            for src, tgt in val_loader:
                pred = model(src, tgt[:, :-1]).argmax(-1)
                gold = tgt[:, 1:]
                keep = gold != PAD
                right += ((pred == gold) & keep).sum().item()
                total += keep.sum().item()
        accelerator.print(f"epoch {epoch} token accuracy {right / total:.3f}")


if __name__ == "__main__":
    main()
