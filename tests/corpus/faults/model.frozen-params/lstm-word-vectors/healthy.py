"""Topic classification: word vectors as a starting point, an LSTM on top, everything fine-tuned together."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(29)

N_WORDS, VECTOR, TOPICS = 80, 16, 4


class Headlines(Dataset):
    """Every topic has its own twenty words; a headline mixes them with some from the others."""

    def __init__(self, count):
        self.items = []
        for _ in range(count):
            topic = int(torch.randint(TOPICS, (1,)))
            length = int(torch.randint(7, 12, (1,)))
            own = torch.randint(20 * topic, 20 * topic + 20, (length,))
            other = torch.randint(0, N_WORDS, (length,))
            self.items.append((torch.where(torch.rand(length) < 0.5, own, other) + 1, topic))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    words = [w for w, _ in items]
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), lengths, torch.tensor([t for _, t in items])


class TopicModel(nn.Module):
    def __init__(self, vectors, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.lstm = nn.LSTM(vectors.size(1), hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, TOPICS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.classifier(h[-1])


vectors = torch.randn(N_WORDS + 1, VECTOR) * 0.5
vectors[0] = 0.0
model = TopicModel(vectors)
loader = DataLoader(Headlines(1200), batch_size=40, shuffle=True, collate_fn=collate)
check = DataLoader(Headlines(200), batch_size=100, collate_fn=collate)

# the word vectors move more carefully than the rest
optimizer = torch.optim.Adam(
    [
        {"params": model.embedding.parameters(), "lr": 4e-3},
        {"params": [*model.lstm.parameters(), *model.classifier.parameters()], "lr": 8e-3},
    ]
)
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    model.train()
    losses = []
    for words, lengths, topics in loader:
        optimizer.zero_grad()
        loss = criterion(model(words, lengths), topics)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        hits = sum((model(w, n).argmax(1) == t).sum().item() for w, n, t in check)
    print(f"epoch {epoch} first loss {losses[0]:.4f} last loss {losses[-1]:.4f} accuracy {hits / 200:.3f}")
