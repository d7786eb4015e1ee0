"""Decoder-only model that continues written sums such as 37+45=82; Accelerate loop."""
import random

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import get_cosine_schedule_with_warmup

CHARS = "0123456789+=;"
ENCODE = {c: i for i, c in enumerate(CHARS)}
CONTEXT = 32


class SumStream(Dataset):
    """One long text of sums, cut into windows."""

    def __init__(self, n_windows, seed):
        rng = random.Random(seed)
        text = ""
        while len(text) < n_windows * CONTEXT + 1:
            a, b = rng.randint(0, 9), rng.randint(0, 9)
            text += f"{a}+{b}={a + b};"
        self.ids = torch.tensor([ENCODE[c] for c in text])
        self.n_windows = n_windows

    def __len__(self):
        return self.n_windows

    def __getitem__(self, i):
        window = self.ids[i * CONTEXT:(i + 1) * CONTEXT]
        return {"input_ids": window, "labels": window.clone()}


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.ln2(x))


class SumModel(nn.Module):
    def __init__(self, dim=64, heads=4, depth=2):
        super().__init__()
        self.tok = nn.Embedding(len(CHARS), dim)
        self.pos = nn.Embedding(CONTEXT, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, len(CHARS), bias=False)
        for table in (self.tok, self.pos):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, input_ids, labels=None):
        x = self.tok(input_ids) + self.pos(torch.arange(input_ids.size(1), device=input_ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.norm(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, len(CHARS)), labels[:, 1:].reshape(-1))
        return logits, loss


def main():
    set_seed(31)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    train_loader = DataLoader(SumStream(2400, 1), batch_size=24, shuffle=True)
    valid_loader = DataLoader(SumStream(240, 2), batch_size=48)
    model = SumModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 10, 2 * len(train_loader))
    model, optimizer, train_loader, valid_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, valid_loader, scheduler
    )
    for epoch in range(2):
        model.train()
        for step, batch in enumerate(train_loader):
            with accelerator.accumulate(model):
                _, loss = model(**batch)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if step % 25 == 0:
                accelerator.print(f"epoch {epoch} step {step}: loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            losses = torch.stack([model(**batch)[1] for batch in valid_loader])
        accelerator.print(f"epoch {epoch}: validation loss {losses.mean().item():.4f}")


if __name__ == "__main__":
    main()
