"""Sequence tagging with a Transformer encoder; small micro-batches, gradients accumulated."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(8)

VOCAB, TAGS, LENGTH = 24, 4, 12
MICRO_BATCH, ACCUM_STEPS = 8, 4
EPOCHS, LR = 3, 0.1


class TagDataset(Dataset):
    """The tag of a token depends on the token and on the one before it."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, VOCAB, (size, LENGTH), generator=g)
        previous = torch.roll(self.tokens, 1, dims=1)
        previous[:, 0] = 0
        self.tags = (self.tokens % 2) * 2 + (previous >= VOCAB // 2).long()

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i], self.tags[i]


class Tagger(nn.Module):
    def __init__(self, width=32, heads=2):
        super().__init__()
        self.word = nn.Embedding(VOCAB, width)
        self.place = nn.Embedding(LENGTH, width)
        self.layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, TAGS)

    def forward(self, tokens):
        h = self.word(tokens) + self.place.weight[: tokens.shape[1]]
        return self.out(self.norm(self.layer(h)))


train_loader = DataLoader(TagDataset(960, 1), batch_size=MICRO_BATCH, shuffle=True, drop_last=True)
valid_loader = DataLoader(TagDataset(160, 2), batch_size=80)

model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, nesterov=True)
updates_per_epoch = len(train_loader) // ACCUM_STEPS
print(f"{len(train_loader)} micro-batches, {updates_per_epoch} updates per epoch")

update = 0
for epoch in range(EPOCHS):
    model.train()
    window = 0.0
    for i, (tokens, tags) in enumerate(train_loader):
        logits = model(tokens)
        loss = F.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1)) / ACCUM_STEPS
        loss.backward()
        window += loss.item()
        if (i + 1) % ACCUM_STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()
            if update % 5 == 0:
                print(f"update {update:3d}  loss {window:.4f}")
            window = 0.0
            update += 1

    model.eval()
    right = total = 0
    with torch.no_grad():
        for tokens, tags in valid_loader:
            right += (model(tokens).argmax(-1) == tags).sum().item()
            total += tags.numel()
    print(f"epoch {epoch}  tag accuracy {right / total:.3f}")
