"""Character GRU over one long text with truncated back-propagation: order matters, the hidden state is detached."""
import itertools
import random

import torch
from torch import nn

random.seed(4)
torch.manual_seed(4)

subjects = ["the pilot", "a sailor", "my uncle", "the doctor", "an old friend", "the cook"]
verbs = ["sees", "finds", "paints", "sells", "repairs", "forgets"]
objects = ["a red boat", "the clock", "two lamps", "his coat", "the long road", "a green door"]
when = ["today", "at night", "in spring", "on mondays", "again"]


def sentence():
    parts = [random.choice(s) for s in (subjects, verbs, objects, when)]
    return " ".join(parts) + ".\n"


text = "".join(itertools.chain.from_iterable(sentence() for _ in range(420)))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])

STREAMS, CHUNK, HIDDEN = 16, 24, 96
usable = (len(data) - 1) // STREAMS * STREAMS
inputs = data[:usable].view(STREAMS, -1)  # each row is one contiguous stream
targets = data[1 : usable + 1].view(STREAMS, -1)


class CharGRU(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.emb = nn.Embedding(n, 32)
        self.gru = nn.GRU(32, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, n)

    def forward(self, x, h):
        y, h = self.gru(self.emb(x), h)
        return self.out(y), h


net = CharGRU(len(chars))
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
lossf = nn.CrossEntropyLoss()

for epoch in range(3):
    h = torch.zeros(1, STREAMS, HIDDEN)
    running, chunks = 0.0, 0
    for s in range(0, inputs.size(1), CHUNK):
        x, y = inputs[:, s : s + CHUNK], targets[:, s : s + CHUNK]
        h = h.detach()  # carry the state on, stop the gradient here
        logits, h = net(x, h)
        loss = lossf(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        running += loss.item()
        chunks += 1
    print(f"epoch {epoch}: {running / chunks:.3f} nats/char over {chunks} chunks")

net.eval()
with torch.no_grad():
    h, c, out = torch.zeros(1, 1, HIDDEN), torch.tensor([[stoi["t"]]]), "t"
    for _ in range(60):
        logits, h = net(c, h)
        c = torch.multinomial(logits[:, -1].softmax(-1), 1)
        out += chars[c.item()]
print(repr(out))
