"""Read digit strings off feature frames with CTC."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

random.seed(9)
torch.manual_seed(9)
DIGITS = 6
shapes = torch.randn(DIGITS, 3, 8)


def line():
    digits = [random.randrange(DIGITS) for _ in range(random.randint(2, 5))]
    frames = []
    for d in digits:
        frames += [0.1 * torch.randn(random.randint(1, 2), 8), shapes[d] + 0.2 * torch.randn(3, 8)]
    return torch.cat(frames), torch.tensor([d + 1 for d in digits])


class LineReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 32, 3, padding=1)
        self.rnn = nn.LSTM(32, 32, bidirectional=True)
        self.out = nn.Linear(64, DIGITS + 1)

    def forward(self, frames):
        h = torch.relu(self.conv(frames.permute(1, 2, 0))).permute(2, 0, 1)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


lines = [line() for _ in range(480)]
reader = LineReader()
ctc = nn.CTCLoss(blank=0, zero_infinity=True, reduction="sum")
adam = torch.optim.Adam(reader.parameters(), lr=5e-3)
for epoch in range(4):
    random.shuffle(lines)
    reader.train()
    for start in range(0, len(lines), 24):
        part = lines[start : start + 24]
        frames = pad_sequence([f for f, _ in part])
        sizes = torch.tensor([len(f) for f, _ in part])
        digits = torch.cat([d for _, d in part])
        counts = torch.tensor([len(d) for _, d in part])
        loss = ctc(reader(frames), digits, sizes, counts)
        adam.zero_grad()
        loss.backward()
        adam.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
