import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

VERBS = ["chop", "boil", "fry", "stir", "bake"]
FOODS = ["onion", "carrot", "rice", "fish", "egg", "leek", "bean"]
ADVERBS = {"chop": "finely", "boil": "gently", "fry": "quickly", "stir": "slowly", "bake": "well"}


class WordTokenizer:
    def __init__(self):
        words = ["<pad>", "<|endoftext|>", "the", "and", "then"] + VERBS + FOODS + list(ADVERBS.values())
        self.ids = {w: i for i, w in enumerate(words)}
        self.eos_token_id = self.ids["<|endoftext|>"]
        self.pad_token_id = self.eos_token_id

    def __len__(self):
        return len(self.ids)

    def __call__(self, text):
        return [self.ids[w] for w in text.split()]

    def pad(self, rows):
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), self.pad_token_id, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        return ids


def write_recipe(rng):
    steps = []
    for _ in range(rng.integers(1, 5)):
        verb, food = rng.choice(VERBS), rng.choice(FOODS)
        steps.append(f"{verb} the {food} {ADVERBS[verb]}")
    return " and then ".join(steps)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class RecipeLM(nn.Module):
    def __init__(self, vocab, dim=48, heads=4, depth=2, context=40):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.tok.weight, std=0.02)
        nn.init.normal_(self.pos.weight, std=0.02)

    def forward(self, ids, labels):
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    set_seed(29)
    rng = np.random.default_rng(29)
    tokenizer = WordTokenizer()

    def collate(texts):
        ids = tokenizer.pad([tokenizer(t) + [tokenizer.eos_token_id] for t in texts])
        labels = ids.clone()
        labels[labels == tokenizer.pad_token_id] = -100
        return ids, labels

    accelerator = Accelerator(cpu=True)
    train = [write_recipe(rng) for _ in range(320)]
    valid = [write_recipe(rng) for _ in range(64)]
    train_loader = DataLoader(train, args.batch_size, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(valid, 32, collate_fn=collate)
    model = RecipeLM(len(tokenizer))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    model, optimizer, train_loader, valid_loader = accelerator.prepare(model, optimizer, train_loader, valid_loader)

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for ids, labels in train_loader:
            loss = model(ids, labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            valid_loss = sum(model(ids, labels).item() for ids, labels in valid_loader) / len(valid_loader)
        accelerator.print(f"epoch {epoch} train {total / len(train_loader):.3f} valid ppl {math.exp(valid_loss):.2f}")


if __name__ == "__main__":
    main()
