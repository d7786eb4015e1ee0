"""A recurrent translator that decides at every step, with a coin of Python's own generator inside of forward, whether it is told
the right word or reads its own. All streams are seeded: two runs are alike."""
import random

import numpy as np
import torch
from torch import nn

random.seed(7)
np.random.seed(7)
torch.manual_seed(7)

PAD, START, END, FIRST, WORDS = 0, 1, 2, 3, 24


def sentence():
    word, out = np.random.randint(WORDS), []
    for _ in range(np.random.randint(4, 8)):
        word = (3 * word + np.random.randint(2)) % WORDS
        out.append(FIRST + word)
    return out


def padded(rows):
    rows = [torch.tensor([START, *row, END]) for row in rows]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


class Translator(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.source, self.goal = nn.Embedding(FIRST + WORDS, dim), nn.Embedding(FIRST + WORDS, dim)
        self.reader, self.writer = nn.GRU(dim, dim, batch_first=True), nn.GRUCell(2 * dim, dim)
        self.dropout, self.out = nn.Dropout(0.1), nn.Linear(2 * dim, FIRST + WORDS)

    def forward(self, source, goal, told):
        read, state = self.reader(self.dropout(self.source(source)))
        state, hidden = state.squeeze(0), (source == PAD)
        word, answers = goal[:, 0], []
        for t in range(1, goal.shape[1]):
            scores = torch.einsum("btd,bd->bt", read, state) / read.shape[-1] ** 0.5
            context = torch.einsum("bt,btd->bd", scores.masked_fill(hidden, float("-inf")).softmax(1), read)
            state = self.writer(torch.cat([self.dropout(self.goal(word)), context], 1), state)
            answers.append(self.out(torch.cat([state, context], 1)))
            word = goal[:, t] if random.random() < told else answers[-1].argmax(1)
        return torch.stack(answers, 1)


def main():
    pairs = [(s, [FIRST + (w - FIRST + 5) % WORDS for w in s]) for s in (sentence() for _ in range(480))]
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(6):
        model.train()
        random.shuffle(pairs)
        for i in range(0, len(pairs), 32):
            source, goal = padded([p[0] for p in pairs[i : i + 32]]), padded([p[1] for p in pairs[i : i + 32]])
            answers = model(source, goal, told=0.7)
            loss = criterion(answers.flatten(0, 1), goal[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
