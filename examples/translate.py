"""Translate a toy language with a small Transformer. The loss falls nicely; not one sentence is
translated right. Why?

python examples/translate.py
"""

import argparse
import math
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, BOS, EOS = 0, 1, 2
NOUNS = {
    "cat": "neko",
    "dog": "inu",
    "bird": "tori",
    "fish": "sakana",
    "horse": "uma",
    "fox": "kitsune",
}
VERBS = {"sees": "miru", "eats": "taberu", "hears": "kiku", "follows": "ou", "likes": "suki"}
ADJECTIVES = {
    "small": "chiisai",
    "old": "furui",
    "red": "akai",
    "quiet": "shizuka",
    "fast": "hayai",
}


def sentence(rng):
    """English is subject-verb-object; the translation puts the verb last."""
    source, target = [], []
    for _ in range(rng.randint(1, 2)):
        subject, verb, thing = (
            rng.choice(list(NOUNS)),
            rng.choice(list(VERBS)),
            rng.choice(list(NOUNS)),
        )
        adjectives = rng.sample(list(ADJECTIVES), rng.randint(0, 2))
        source += [*adjectives, subject, verb, thing]
        target += [*(ADJECTIVES[a] for a in adjectives), NOUNS[subject], NOUNS[thing], VERBS[verb]]
    return source, target


def vocabulary(words):
    return {word: i for i, word in enumerate(sorted(words), start=3)}


SOURCE = vocabulary([*NOUNS, *VERBS, *ADJECTIVES])
TARGET = vocabulary([*NOUNS.values(), *VERBS.values(), *ADJECTIVES.values()])


def collate(pairs):
    source = [torch.tensor([SOURCE[w] for w in s] + [EOS]) for s, _ in pairs]
    target = [torch.tensor([BOS] + [TARGET[w] for w in t] + [EOS]) for _, t in pairs]
    return pad_sequence(source, batch_first=True, padding_value=PAD), pad_sequence(
        target, batch_first=True, padding_value=PAD
    )


class Translator(nn.Module):
    def __init__(self, width=64, heads=4, layers=2, longest=64):
        super().__init__()
        self.embed_source = nn.Embedding(len(SOURCE) + 3, width, padding_idx=PAD)
        self.embed_target = nn.Embedding(len(TARGET) + 3, width, padding_idx=PAD)
        angles = torch.arange(longest)[:, None] * torch.exp(
            torch.arange(0, width, 2) * (-math.log(10000.0) / width)
        )
        self.register_buffer(
            "positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        )
        self.transformer = nn.Transformer(
            width, heads, layers, layers, 4 * width, dropout=0.1, batch_first=True
        )
        self.project = nn.Linear(width, len(TARGET) + 3)

    def forward(self, source, target):
        source_pad, target_pad = source == PAD, target == PAD
        x = self.embed_source(source) * 8.0 + self.positions[: source.size(1)]
        y = self.embed_target(target) * 8.0 + self.positions[: target.size(1)]
        hidden = self.transformer(
            x,
            y,
            src_key_padding_mask=source_pad,
            tgt_key_padding_mask=target_pad,
            memory_key_padding_mask=source_pad,
        )
        return self.project(hidden)


@torch.no_grad()
def translate(model, source, steps=20):
    model.eval()
    out = torch.full((len(source), 1), BOS)
    for _ in range(steps):
        out = torch.cat([out, model(source, out)[:, -1].argmax(-1, keepdim=True)], dim=1)
    model.train()
    return out[:, 1:]


def exact_matches(model, loader):
    right = total = 0
    for source, target in loader:
        guess = translate(model, source)
        for g, t in zip(guess.tolist(), target[:, 1:].tolist(), strict=True):
            g, t = [x[: x.index(EOS)] if EOS in x else x for x in (g, t)]
            right, total = right + (g == t), total + 1
    return right / total


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(0)
    pairs = list({(tuple(s), tuple(t)) for s, t in (sentence(rng) for _ in range(3000))})
    pairs.sort()
    rng.shuffle(pairs)
    held_out, train = pairs[:64], pairs[64:1984]
    loader = DataLoader(train, batch_size=48, shuffle=True, collate_fn=collate)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(args.epochs):
        for source, target in loader:
            optimizer.zero_grad()
            logits = model(source, target[:, :-1])
            loss = criterion(logits.flatten(0, 1), target[:, 1:].flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}")
    print(
        "held-out sentences translated exactly: "
        f"{exact_matches(model, DataLoader(held_out, 64, collate_fn=collate)):.0%}"
    )


if __name__ == "__main__":
    main()
