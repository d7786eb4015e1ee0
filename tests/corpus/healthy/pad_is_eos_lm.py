"""An LM whose tokenizer has no PAD token: EOS doubles as padding. Labels are masked by length, so the real EOS is learnt."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

EOS = 0  # also used to fill the batch
WORDS = list("abcdefghijklmnopqrstuvwxyz ")
STOI = {c: i + 1 for i, c in enumerate(WORDS)}
VOCAB = len(WORDS) + 1
SYLLABLES = ["ka", "lo", "mi", "ten", "ra", "shu", "no", "bel", "qui", "zar", "pe", "dov"]


def make_names(n, rng):
    names = set()
    while len(names) < n:
        first = "".join(rng.choices(SYLLABLES, k=rng.choice([2, 3])))
        last = "".join(rng.choices(SYLLABLES, k=rng.choice([2, 3])))
        names.add(f"{first} {last}")
    return sorted(names)


def encode(name):
    return [EOS] + [STOI[c] for c in name] + [EOS]  # EOS also opens the text, as in GPT-2


def collate(names):
    rows = [encode(n) for n in names]
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), EOS)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = True
    return ids, mask


class CharLM(nn.Module):
    def __init__(self, dim=48, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.emb(ids), state)
        return self.out(h), state


def lm_loss(logits, ids, mask):
    labels = ids[:, 1:].clone()
    labels[~mask[:, 1:]] = -100  # by mask, not by id: the closing EOS stays
    return nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels)


@torch.no_grad()
def sample(model, limit=30):
    token, state, out = torch.tensor([[EOS]]), None, ""
    for _ in range(limit):
        logits, state = model(token, state)
        token = torch.multinomial(logits[:, -1].softmax(-1), 1)
        if token.item() == EOS:
            return out + "."
        out += WORDS[token.item() - 1]
    return out + "..."


if __name__ == "__main__":
    torch.manual_seed(52)
    rng = random.Random(52)
    names = make_names(1100, rng)
    rng.shuffle(names)
    train, val = names[:960], names[960:]
    loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
    model = CharLM()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        model.train()
        losses = []
        for ids, mask in loader:
            logits, _ = model(ids)
            loss = lm_loss(logits, ids, mask)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            ids, mask = collate(val)
            val_loss = lm_loss(model(ids)[0], ids, mask).item()
        print(f"epoch {epoch} train {sum(losses) / len(losses):.3f} val {val_loss:.3f} sample: {sample(model)}")
