"""Continue a melody from a chord: GRUCell decoder unrolled by hand, teacher-forced while training."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(34)
torch.manual_seed(34)

NOTES, CHORDS, BARS = 12, 8, 10
START = NOTES
# every chord has a small set of notes and a direction
CHORD_NOTES = [sorted(random.sample(range(NOTES), 5)) for _ in range(CHORDS)]


def compose(chord):
    """Walk through the notes of the chord, up or down, from a random one; sometimes stay."""
    notes = CHORD_NOTES[chord]
    at = random.randrange(len(notes))
    melody = []
    for _ in range(BARS):
        melody.append(notes[at])
        if random.random() < 0.7:
            at = (at + (1 if chord % 2 else -1)) % len(notes)
    return melody


def sample(n):
    chords = [random.randrange(CHORDS) for _ in range(n)]
    return torch.tensor(chords), torch.tensor([compose(c) for c in chords])


class MelodyDecoder(nn.Module):
    def __init__(self, size=40):
        super().__init__()
        self.chord = nn.Embedding(CHORDS, size)
        self.note = nn.Embedding(NOTES + 1, size)
        self.cell = nn.GRUCell(size, size)
        self.readout = nn.Linear(size, NOTES)

    def forward(self, chord, melody):
        state = torch.tanh(self.chord(chord))
        previous = torch.full_like(chord, START)
        outputs = []
        for t in range(melody.size(1)):
            previous = melody[:, t]
            state = self.cell(self.note(previous), state)
            outputs.append(self.readout(state))
        return torch.stack(outputs, dim=1)

    @torch.no_grad()
    def play(self, chord, length):
        state = torch.tanh(self.chord(chord))
        previous = torch.full_like(chord, START)
        melody = []
        for _ in range(length):
            state = self.cell(self.note(previous), state)
            previous = self.readout(state).argmax(-1)
            melody.append(previous)
        return torch.stack(melody, dim=1)


decoder = MelodyDecoder()
optimizer = torch.optim.Adam(decoder.parameters(), lr=5e-3)
for iteration in range(100):
    chord, melody = sample(32)
    loss = F.cross_entropy(decoder(chord, melody).flatten(0, 1), melody.flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
    optimizer.step()
    if iteration % 20 == 19:
        chord = torch.arange(CHORDS)
        played = decoder.play(chord, BARS)
        fitting = [note in CHORD_NOTES[c] for c, row in enumerate(played.tolist()) for note in row]
        print(f"iteration {iteration} loss {loss.item():.4f} notes of the chord {sum(fitting) / len(fitting):.3f}")
