"""Does a melody end on its tonic? An LSTM whose state is read at the last note of each melody."""
import random

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pad_sequence

REST = 0


def melody():
    tonic = random.randint(1, 12)
    notes = [tonic] + [random.randint(1, 12) for _ in range(random.randint(2, 14))]
    home = random.random() < 0.5
    notes[-1] = tonic if home else random.choice([n for n in range(1, 13) if n != tonic])
    return torch.tensor(notes), float(home)


def assemble(pairs):
    notes = [n for n, _ in pairs]
    lengths = torch.tensor([len(n) for n in notes])
    padded = pad_sequence(notes, batch_first=True, padding_value=REST)
    return padded, lengths, torch.tensor([h for _, h in pairs])


class Tonic(nn.Module):
    def __init__(self, size=48):
        super().__init__()
        self.note = nn.Embedding(13, 24, padding_idx=REST)
        self.lstm = nn.LSTM(24, size, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(size + 24, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, padded, lengths):
        states, _ = self.lstm(self.note(padded))
        final = states[torch.arange(len(lengths)), lengths - 1]
        ending = self.note(padded[torch.arange(len(lengths)), lengths - 1])
        return self.mlp(torch.cat([final, ending], dim=1)).squeeze(1)


if __name__ == "__main__":
    random.seed(19)
    torch.manual_seed(19)
    book = [melody() for _ in range(1500)]
    held_out = assemble([melody() for _ in range(300)])
    model = Tonic()
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(3):
        random.shuffle(book)
        model.train()
        for at in range(0, len(book), 50):
            padded, lengths, home = assemble(book[at : at + 50])
            loss = bce(model(padded, lengths), home)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            right = ((model(*held_out[:2]) > 0).float() == held_out[2]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.3f} held-out accuracy {right.item():.3f}")
