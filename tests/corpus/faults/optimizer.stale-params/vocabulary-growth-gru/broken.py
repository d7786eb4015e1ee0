"""Intent classifier over token ids; the vocabulary grows by the domain's own words before training."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 12
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

GENERAL_WORDS, DOMAIN_WORDS, INTENTS = 60, 20, 5


class IntentNet(nn.Module):
    def __init__(self, words, hidden=40):
        super().__init__()
        self.words = nn.Embedding(words, 24)
        self.encoder = nn.GRU(24, hidden, batch_first=True)
        self.out = nn.Linear(hidden, INTENTS)

    def grow_vocabulary(self, extra):
        """Adds rows for new words and keeps those of the old ones."""
        old = self.words
        bigger = nn.Embedding(old.num_embeddings + extra, old.embedding_dim)
        with torch.no_grad():
            bigger.weight[: old.num_embeddings] = old.weight
        self.words = bigger

    def forward(self, ids):
        _, last = self.encoder(self.words(ids))
        return self.out(last[-1])


def make_sentences(n, length=10):
    intent = torch.randint(0, INTENTS, (n,))
    ids = torch.randint(0, GENERAL_WORDS + DOMAIN_WORDS, (n, length))
    # three words in each sentence come from the intent's own range
    places = torch.rand(n, length).argsort(1)[:, :3]
    ids.scatter_(1, places, intent[:, None] * 16 + torch.randint(0, 16, (n, 3)))
    return TensorDataset(ids, intent)


train = DataLoader(make_sentences(1280), batch_size=40, shuffle=True)
valid = DataLoader(make_sentences(200), batch_size=100)

net = IntentNet(GENERAL_WORDS)
adam = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.0)
net.grow_vocabulary(DOMAIN_WORDS)
ce = nn.CrossEntropyLoss()

for epoch in range(1, 5):
    net.train()
    mean = 0.0
    for ids, intent in train:
        loss = ce(net(ids), intent)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        adam.step()
        mean += loss.item() / len(train)
    net.eval()
    with torch.inference_mode():
        right = sum((net(ids).argmax(-1) == intent).sum().item() for ids, intent in valid)
    print(epoch, round(mean, 4), right / 200)
