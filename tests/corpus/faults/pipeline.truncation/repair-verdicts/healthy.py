"""Instruction tuning of a small decoder: notes in, one-word verdict out. Loss on the verdict only."""

import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WORDS = [
    "pump",
    "valve",
    "motor",
    "noise",
    "smell",
    "heat",
    "oil",
    "belt",
    "rust",
    "dust",
    "leak",
    "crack",
    "loose",
    "worn",
    "cold",
    "wet",
]
VERDICTS = {"leak": "seal", "crack": "weld", "loose": "tighten", "worn": "replace"}
SPECIAL = ["<pad>", "<s>", "</s>", "verdict"]
TOKENS = SPECIAL + WORDS + list(VERDICTS.values())
INDEX = {w: i for i, w in enumerate(TOKENS)}
PAD, BOS, EOS, SEP = range(4)
IGNORE = -100


def make_notes(n, seed):
    rng = random.Random(seed)
    plain = [w for w in WORDS if w not in VERDICTS]
    notes = []
    for _ in range(n):
        symptom = rng.choice(list(VERDICTS))
        text = [rng.choice(plain) for _ in range(rng.randint(6, 26))]
        text[rng.randrange(max(0, len(text) - 8), len(text))] = symptom
        notes.append((text, VERDICTS[symptom]))
    return notes


class NoteDataset(Dataset):
    def __init__(self, notes, max_len):
        self.notes = notes
        self.max_len = max_len

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        text, verdict = self.notes[i]
        answer = [INDEX[verdict], EOS]
        body = [INDEX[w] for w in text][-(self.max_len - len(answer) - 2) :]
        prompt = [BOS, *body, SEP]
        ids = prompt + answer
        labels = [IGNORE] * len(prompt) + answer
        return torch.tensor(ids), torch.tensor(labels)


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([r[0] for r in rows], batch_first=True, padding_value=PAD)
    labels = nn.utils.rnn.pad_sequence([r[1] for r in rows], batch_first=True, padding_value=IGNORE)
    return ids, labels


class Decoder(nn.Module):
    def __init__(self, width, heads, layers, max_len):
        super().__init__()
        self.heads = heads
        self.tokens = nn.Embedding(len(TOKENS), width)
        self.places = nn.Parameter(torch.randn(max_len, width) * 0.02)
        self.attn_norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.qkvs = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.ff_norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.ffs = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(TOKENS), bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids):
        b, t = ids.shape
        x = self.tokens(ids) + self.places[:t]
        for n1, qkv, out, n2, ff in zip(self.attn_norms, self.qkvs, self.outs, self.ff_norms, self.ffs, strict=True):
            q, k, v = (m.reshape(b, t, self.heads, -1).transpose(1, 2) for m in qkv(n1(x)).chunk(3, dim=-1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + out(y.transpose(1, 2).reshape(b, t, -1))
            x = x + ff(n2(x))
        return self.head(self.final(x))


def answer_loss(model, ids, labels):
    logits = model(ids)[:, :-1]
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1), ignore_index=IGNORE)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--max-len", type=int, default=20)
    ap.add_argument("--steps", type=int, default=160)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    random.seed(0)
    torch.manual_seed(0)

    train_loader = DataLoader(NoteDataset(make_notes(1600, 1), args.max_len), 32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(NoteDataset(make_notes(128, 2), args.max_len), 64, collate_fn=collate)
    model = Decoder(width=48, heads=4, layers=2, max_len=args.max_len)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10))

    step = 0
    while step < args.steps:
        for ids, labels in train_loader:
            model.train()
            loss = answer_loss(model, ids, labels)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            step += 1
            if step % 40 == 0:
                model.eval()
                with torch.no_grad():
                    val = sum(answer_loss(model, i, y).item() for i, y in val_loader) / len(val_loader)
                print(f"step {step} loss {loss.item():.3f} val {val:.3f}")
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
