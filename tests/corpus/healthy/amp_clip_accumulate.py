"""fp16 autocast + accumulation + clipping + schedule, in the documented order: unscale once, clip, step, update, schedule."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TokenTagger(nn.Module):
    def __init__(self, vocab, tags, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.conv = nn.Conv1d(dim, dim, kernel_size=3, padding=1)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        h = self.emb(ids)
        h = h + F.gelu(self.conv(h.transpose(1, 2)).transpose(1, 2))
        return self.out(self.norm(h))


def tagging_batch(n, length, vocab, tags, gen):
    """The tag of a word depends on its own class and on that of the word before it."""
    ids = torch.randint(0, vocab, (n, length), generator=gen)
    kind = ids % 3
    previous = torch.cat([torch.zeros(n, 1, dtype=torch.long), kind[:, :-1]], dim=1)
    return ids, (kind + 3 * previous) % tags


def train():
    torch.manual_seed(64)
    gen = torch.Generator().manual_seed(64)
    vocab, tags, accumulate, updates = 30, 6, 2, 70
    model = TokenTagger(vocab, tags)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=updates, eta_min=4e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=50)

    for update in range(updates):
        total = 0.0
        for _ in range(accumulate):
            ids, target = tagging_batch(16, 20, vocab, tags, gen)
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(ids)
            loss = F.cross_entropy(logits.float().reshape(-1, tags), target.reshape(-1)) / accumulate
            scaler.scale(loss).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scale_before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if scaler.get_scale() >= scale_before:  # not on a skipped step
            scheduler.step()
        if update % 10 == 0 or update == updates - 1:
            print(f"update {update:3d} loss {total:.3f} grad norm {norm.item():.2f} lr {scheduler.get_last_lr()[0]:.4f}")


train()
