"""Auto-tagging of music clips: each clip carries several tags out of ten."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TAGS = ["guitar", "piano", "drums", "vocals", "strings", "fast", "slow", "live", "ambient", "brass"]


def synthesize(num_clips, seed):
    rng = np.random.default_rng(seed)
    tags = (rng.random((num_clips, len(TAGS))) < 0.3).astype(np.float32)
    tags[:, 6] = np.where(tags[:, 5] > 0, 0.0, tags[:, 6])
    timbre = np.random.default_rng(1234).normal(size=(len(TAGS), 20))
    envelope = np.random.default_rng(4321).normal(size=(len(TAGS), 1, 30)) * 0.5 + 1.0
    clips = np.einsum("nk,kf,kft->nft", tags, timbre, np.broadcast_to(envelope, (len(TAGS), 20, 30)))
    clips = clips + rng.normal(size=clips.shape)
    clips = (clips - clips.mean((0, 2), keepdims=True)) / clips.std((0, 2), keepdims=True)
    return torch.from_numpy(clips.astype(np.float32)), torch.from_numpy(tags)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(20, 40, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(80)
        self.out = nn.Linear(80, len(TAGS))

    def forward(self, spec):
        seq, _ = self.rnn(spec.transpose(1, 2))
        return self.out(self.norm(seq.mean(1)))


def mean_average_precision(scores, truth):
    aps = []
    for k in range(truth.shape[1]):
        order = scores[:, k].argsort(descending=True)
        hits = truth[order, k]
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        aps.append(((precision * hits).sum() / hits.sum().clamp(min=1)).item())
    return sum(aps) / len(aps)


torch.manual_seed(3)
np.random.seed(3)
train_x, train_y = synthesize(600, 10)
valid_x, valid_y = synthesize(150, 11)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=30, shuffle=True)
model = Tagger()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

for epoch in range(5):
    model.train()
    epoch_loss = 0.0
    for spec, tags in loader:
        optimizer.zero_grad()
        loss = criterion(model(spec), tags)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
    scheduler.step()

    model.eval()
    with torch.no_grad():
        logits = model(valid_x)
        predicted = torch.sigmoid(logits) > 0.5
        exact = (predicted == valid_y.bool()).all(1).float().mean().item()
    print(
        f"epoch {epoch}: loss {epoch_loss / len(loader):.4f}  "
        f"val mAP {mean_average_precision(logits, valid_y):.3f}  exact {exact:.3f}"
    )
