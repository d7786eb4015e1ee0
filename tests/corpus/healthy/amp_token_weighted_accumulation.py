"""Float16 language model; each update weighs its micro-batches by real token counts, and the loop checks each step for a skip."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

PAD, VOCAB, WIDTH = 0, 29, 32
MICRO, PER_UPDATE, UPDATES = 12, 3, 60


def sentence(rng):
    start, stride = int(rng.integers(1, VOCAB)), int(rng.integers(1, 4))
    n = int(rng.integers(6, 21))
    return torch.tensor([1 + (start + stride * k + (rng.random() < 0.05)) % (VOCAB - 1) for k in range(n)]).long()


def micro_batch(pool, rng):
    rows = [pool[int(i)] for i in rng.choice(len(pool), MICRO, replace=False)]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return ids[:, :-1], ids[:, 1:]


class GatedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH, padding_idx=PAD)
        self.rnn = nn.GRU(WIDTH, 2 * WIDTH, batch_first=True)
        self.norm = nn.LayerNorm(2 * WIDTH)
        self.out = nn.Linear(2 * WIDTH, VOCAB)

    def forward(self, ids):
        with torch.autocast("cpu", enabled=False):
            h, _ = self.rnn(self.embed(ids).float())
        return self.out(self.norm(h))


def main():
    random.seed(70)
    np.random.seed(70)
    torch.manual_seed(70)
    rng = np.random.default_rng(70)
    pool = [sentence(rng) for _ in range(900)]
    model = GatedLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17, growth_interval=25)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=8)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=UPDATES - 8, eta_min=1e-4)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[8])

    skipped = 0
    for update in range(UPDATES):
        window = [micro_batch(pool, rng) for _ in range(PER_UPDATE)]
        tokens = sum(int((y != PAD).sum()) for _, y in window)
        total = 0.0
        for x, y in window:
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(x)
                loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten(), ignore_index=PAD, reduction="sum") / tokens
            scaler.scale(loss).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if scaler.get_scale() < before:
            skipped += 1
        else:
            scheduler.step()
        if update % 10 == 9:
            print(f"update {update + 1} nll/token {total:.4f} norm {norm:.3f} scale {before:g} skipped {skipped}")


if __name__ == "__main__":
    main()
