"""Department of a letter from its first words: nearly every letter is longer than the limit, and is meant to be cut."""

import random
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(14)
np.random.seed(14)
torch.manual_seed(14)

PAD, UNK, CLS, SEP = 0, 1, 2, 3
MAX_LEN = 24
SUBJECTS = [["rent", "lease", "flat", "deposit"], ["tax", "income", "refund", "form"], ["school", "pupil", "teacher", "class"]]
PLAIN = "dear sir we write to you about the matter of our last letter and hope for an answer soon".split()


def write_letter(names):
    department = random.randrange(3)
    opening = [random.choice(SUBJECTS[department]) if random.random() < 0.3 else random.choice(PLAIN) for _ in range(18)]
    body = [random.choice(PLAIN) for _ in range(random.choice([0, 10, 30, 60, 90]))]
    signature = [random.choice(names), random.choice(names)]
    return opening[:2] + signature + opening[2:] + body, department


train_names = [f"name{i}" for i in range(120)]
new_names = train_names[:20] + [f"stranger{i}" for i in range(60)]
train_letters = [write_letter(train_names) for _ in range(512)]
later_letters = [write_letter(new_names) for _ in range(128)]
counts = Counter(word for words, _ in train_letters for word in words)
vocab = {word: i + 4 for i, (word, n) in enumerate(counts.most_common()) if n >= 4}


class Letters(Dataset):
    def __init__(self, letters):
        self.letters = letters

    def __len__(self):
        return len(self.letters)

    def __getitem__(self, i):
        words, department = self.letters[i]
        ids = [vocab.get(word, UNK) for word in words][: MAX_LEN - 2]
        return [CLS, *ids, SEP], department


def collate(batch):
    ids = torch.full((len(batch), MAX_LEN), PAD)
    for row, (tokens, _) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
    return ids, ids == PAD, torch.tensor([department for _, department in batch])


class LetterSorter(nn.Module):
    def __init__(self, size, dim=32):
        super().__init__()
        self.words = nn.Embedding(size, dim, padding_idx=PAD)
        self.places = nn.Embedding(MAX_LEN, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.department = nn.Linear(dim, 3)

    def forward(self, ids, padding):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.department(self.norm(self.encoder(x, src_key_padding_mask=padding)[:, 0]))


loader = DataLoader(Letters(train_letters), 32, shuffle=True, collate_fn=collate)
later = DataLoader(Letters(later_letters), 64, collate_fn=collate)
model = LetterSorter(len(vocab) + 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.train()
    losses = []
    for ids, padding, department in loader:
        loss = nn.functional.cross_entropy(model(ids, padding), department)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        hits = sum((model(ids, padding).argmax(1) == department).sum().item() for ids, padding, department in later)
    print(f"epoch {epoch} loss {np.mean(losses):.3f} later letters {hits / len(later_letters):.3f}")
