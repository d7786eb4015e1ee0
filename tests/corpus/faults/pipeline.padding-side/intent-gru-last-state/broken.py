import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(12)
torch.manual_seed(12)

INTENTS = {
    "play": ["play", "song", "music", "album"],
    "call": ["call", "ring", "phone", "dial"],
    "note": ["note", "write", "remember", "list"],
}
FILL = ["please", "the", "a", "now", "my", "for", "me", "again", "to", "mum"]
VOCAB = {w: i + 1 for i, w in enumerate([w for ws in INTENTS.values() for w in ws] + FILL)}


def utterance():
    label = random.randrange(3)
    key = random.choice(list(INTENTS.values())[label])
    words = random.choices(FILL, k=random.randint(0, 11))
    words.insert(random.randint(0, len(words)), key)
    return [VOCAB[w] for w in words], label


def pad_batch(samples):
    longest = max(len(ids) for ids, _ in samples)
    batch = torch.zeros(len(samples), longest, dtype=torch.long)
    for i, (ids, _) in enumerate(samples):
        batch[i, : len(ids)] = torch.tensor(ids)
    return batch, torch.tensor([label for _, label in samples])


class IntentModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.words = nn.Embedding(len(VOCAB) + 1, dim, padding_idx=0)
        self.gru = nn.GRU(dim, 48, batch_first=True)
        self.classify = nn.Linear(48, len(INTENTS))

    def forward(self, ids):
        states, _ = self.gru(self.words(ids))
        return self.classify(states[:, -1])


train = DataLoader([utterance() for _ in range(1500)], batch_size=30, shuffle=True, collate_fn=pad_batch)
valid = DataLoader([utterance() for _ in range(300)], batch_size=100, collate_fn=pad_batch)
net = IntentModel()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
loss_function = nn.CrossEntropyLoss()
for epoch in range(2):
    net.train()
    for ids, label in train:
        loss = loss_function(net(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(ids).argmax(-1) == label).sum().item() for ids, label in valid)
    print(f"epoch {epoch} loss {loss.item():.3f} valid accuracy {right / 300:.3f}")
