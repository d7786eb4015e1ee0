# Triage of bug reports: is it a crash, a wish, or a question? A small RoBERTa-like encoder with its own attention.
import numpy as np
import torch
import torch.nn as nn

SEED = 17
np.random.seed(SEED)
torch.manual_seed(SEED)

BOS_ID, PAD_ID, EOS_ID = 0, 1, 2
WORDS = (
    "segfault traceback panic hang leak abort please add support would nice option how where why does what work "
    "file window menu server client build test page button log user when i the it on with a"
).split()
VOCAB = {w: i + 3 for i, w in enumerate(WORDS)}
CUES = [WORDS[:6], WORDS[6:12], WORDS[12:18]]
PLAIN = WORDS[18:]


def write_report():
    label = np.random.randint(3)
    n = np.random.randint(5, 22)
    words = list(np.random.choice(PLAIN, n))
    for at in np.random.choice(n, 2, replace=False):
        words[at] = np.random.choice(CUES[label])
    return words, label


def batchify(reports):
    rows = [[BOS_ID] + [VOCAB[w] for w in words] + [EOS_ID] for words, _ in reports]
    width = max(len(r) for r in rows)
    input_ids = torch.tensor([r + [PAD_ID] * (width - len(r)) for r in rows])
    attention_mask = (input_ids != 0).long()
    return input_ids, attention_mask, torch.tensor([label for _, label in reports])


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.head_dim**-0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, torch.finfo(scores.dtype).min)
        mixed = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = SelfAttention(dim, heads)
        self.norm_a, self.norm_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        x = self.norm_a(x + self.attention(x, mask))
        return self.norm_b(x + self.ff(x))


class Triage(nn.Module):
    def __init__(self, vocab, dim=48, heads=4, depth=2, max_len=32, classes=3):
        super().__init__()
        self.words = nn.Embedding(vocab, dim, padding_idx=PAD_ID)
        self.places = nn.Embedding(max_len, dim)
        self.norm = nn.LayerNorm(dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.classify = nn.Linear(dim, classes)

    def forward(self, input_ids, attention_mask):
        at = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.norm(self.words(input_ids) + self.places(at))
        for layer in self.layers:
            x = layer(x, attention_mask)
        return self.classify(x[:, 0])


train = [write_report() for _ in range(640)]
valid = [write_report() for _ in range(128)]
model = Triage(vocab=len(VOCAB) + 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(5):
    model.train()
    running = 0.0
    order = np.random.permutation(len(train))
    for start in range(0, len(train), 32):
        ids, mask, labels = batchify([train[i] for i in order[start : start + 32]])
        optimizer.zero_grad()
        loss = loss_fn(model(ids, mask), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        ids, mask, labels = batchify(valid)
        accuracy = (model(ids, mask).argmax(-1) == labels).float().mean().item()
    print(f"epoch {epoch + 1}: loss {running / (len(train) // 32):.3f}, valid accuracy {accuracy:.3f}")
