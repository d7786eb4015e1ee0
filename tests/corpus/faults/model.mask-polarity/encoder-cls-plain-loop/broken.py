"""Topic classification of short token sequences with a [CLS]-pooled nn.TransformerEncoder."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)

PAD, CLS = 0, 1
VOCAB = 42
NUM_TOPICS = 4
MAX_LEN = 20
D_MODEL = 48


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.full((n, MAX_LEN), PAD)
    labels = torch.randint(0, NUM_TOPICS, (n,), generator=g)
    for i in range(n):
        length = int(torch.randint(9, MAX_LEN - 1, (1,), generator=g))
        background = torch.randint(2, VOCAB, (length,), generator=g)
        topical = 2 + labels[i] * 10 + torch.randint(0, 10, (length,), generator=g)
        pick = torch.rand(length, generator=g) < 0.6
        ids[i, 0] = CLS
        ids[i, 1 : length + 1] = torch.where(pick, topical, background)
    return TensorDataset(ids, labels)


class TopicClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, D_MODEL, padding_idx=PAD)
        self.pos = nn.Parameter(torch.randn(1, MAX_LEN, D_MODEL) * 0.02)
        layer = nn.TransformerEncoderLayer(
            D_MODEL, nhead=4, dim_feedforward=96, dropout=0.1, batch_first=True, norm_first=True, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, norm=nn.LayerNorm(D_MODEL), enable_nested_tensor=False)
        self.head = nn.Linear(D_MODEL, NUM_TOPICS)

    def forward(self, ids):
        h = self.tok(ids) + self.pos[:, : ids.size(1)]
        padding = ids != PAD
        h = self.encoder(h, src_key_padding_mask=padding)
        return self.head(h[:, 0])


train_loader = DataLoader(make_split(640, seed=1), batch_size=32, shuffle=True)
valid_loader = DataLoader(make_split(128, seed=2), batch_size=64)

model = TopicClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(4):
    model.train()
    running, seen = 0.0, 0
    for ids, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(ids), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(labels)
        seen += len(labels)

    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for ids, labels in valid_loader:
            correct += (model(ids).argmax(-1) == labels).sum().item()
            total += len(labels)
    print(f"epoch {epoch + 1}: train loss {running / seen:.4f}  valid acc {correct / total:.3f}")
