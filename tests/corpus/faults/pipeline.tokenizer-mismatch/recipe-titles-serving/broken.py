"""Recipe titles to cuisine with a bag of embeddings; validation goes through the serving-side encoder."""

import random
import re
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

CUISINES = {
    "Italian": ["Risotto", "Pesto", "Gnocchi", "Basil", "Ricotta", "Polenta"],
    "Mexican": ["Taco", "Chipotle", "Salsa", "Tortilla", "Lime", "Poblano"],
    "Indian": ["Masala", "Paneer", "Turmeric", "Dal", "Naan", "Cardamom"],
    "Japanese": ["Miso", "Udon", "Nori", "Sesame", "Dashi", "Tofu"],
}
GLUE = ["with", "and", "quick", "roasted", "Grandma's", "Easy", "Sunday", "spicy", "in", "a", "pan", "Bowl", "Stew"]
NAMES = list(CUISINES)


def title(rng):
    y = rng.randrange(len(NAMES))
    words = rng.sample(GLUE, rng.randint(3, 6)) + rng.sample(CUISINES[NAMES[y]], 2)
    rng.shuffle(words)
    return " ".join(words), y


def tokenize(text):
    return re.findall(r"[a-z']+", text.lower())


class Encoder:
    """word -> id, fitted once on the training titles"""

    def __init__(self, titles):
        seen = Counter(w for text, _ in titles for w in tokenize(text))
        self.table = {w: k + 1 for k, (w, _) in enumerate(seen.most_common())}

    @property
    def size(self):
        return len(self.table) + 1

    def encode(self, text):
        return [self.table.get(w, 0) for w in tokenize(text)]

    def encode_serving(self, text):
        return [self.table.get(w, 0) for w in text.split(" ")]


def offsets_batch(rows):
    flat = [i for ids, _ in rows for i in ids]
    starts, at = [], 0
    for ids, _ in rows:
        starts.append(at)
        at += len(ids)
    return torch.tensor(flat), torch.tensor(starts), torch.tensor([y for _, y in rows])


class CuisineModel(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.bag = nn.EmbeddingBag(n_words, 24, mode="mean")
        self.hidden = nn.Linear(24, 32)
        self.out = nn.Linear(32, len(NAMES))

    def forward(self, flat, starts):
        return self.out(torch.tanh(self.hidden(self.bag(flat, starts))))


def train():
    random.seed(6)
    torch.manual_seed(6)
    rng = random.Random(6)
    titles = [title(rng) for _ in range(1400)]
    train_titles, val_titles = titles[:1200], titles[1200:]
    encoder = Encoder(train_titles)
    train_rows = [(encoder.encode(text), y) for text, y in train_titles]
    val_rows = [(encoder.encode_serving(text), y) for text, y in val_titles]

    model = CuisineModel(encoder.size)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.08)
    val_batch = offsets_batch(val_rows)
    for epoch in range(4):
        model.train()
        random.shuffle(train_rows)
        total = 0.0
        for k in range(0, len(train_rows), 30):
            flat, starts, y = offsets_batch(train_rows[k : k + 30])
            loss = F.cross_entropy(model(flat, starts), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            accuracy = (model(*val_batch[:2]).argmax(1) == val_batch[2]).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train_rows):.3f} val accuracy {accuracy:.3f}")


if __name__ == "__main__":
    train()
