"""Headline categories with a convolution over words; all headlines are one big array of token ids."""
import numpy as np
import torch
import torch.nn.functional as F

rng = np.random.default_rng(9)
torch.manual_seed(9)
VOCAB, ROOM, CATEGORIES = 200, 160, 5


def headlines(count):
    ids = np.zeros((count, ROOM), dtype=np.int64)
    sizes = rng.integers(4, 14, count)
    category = rng.integers(0, CATEGORIES, count)
    for row in range(count):
        words = rng.integers(50, VOCAB, sizes[row])
        words[rng.integers(0, sizes[row], 2)] = 1 + category[row] * 9 + rng.integers(0, 9, 2)
        ids[row, : sizes[row]] = words
    return torch.from_numpy(ids), torch.from_numpy(sizes), torch.from_numpy(category)


class HeadlineNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCAB, 24, padding_idx=0)
        self.conv = torch.nn.Conv1d(24, 48, 3, padding=1)
        self.out = torch.nn.Linear(48, CATEGORIES)

    def forward(self, ids):
        h = F.relu(self.conv(self.words(ids).transpose(1, 2)))
        return self.out(h.masked_fill((ids == 0).unsqueeze(1), 0.0).amax(dim=2))


ids, sizes, category = headlines(1500)
net = HeadlineNet()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(3):
    order = torch.randperm(len(ids))
    correct = 0
    for part in order.split(50):
        text = ids[part, : sizes[part].max()]
        logits = net(text)
        loss = F.cross_entropy(logits, category[part])
        opt.zero_grad()
        loss.backward()
        opt.step()
        correct += (logits.argmax(1) == category[part]).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {correct / len(ids):.3f}")
