"""Short digit strings sorted by a GRU encoder and decoder with teacher forcing."""
import torch
from torch import nn, optim

torch.manual_seed(52)

DIGITS, BOS = 10, 10
LENGTH = 6


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(DIGITS, hidden)
        self.rnn = nn.GRU(hidden, hidden)

    def forward(self, source):
        _, state = self.rnn(self.embedding(source))
        return state


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(DIGITS + 1, hidden)
        self.rnn = nn.GRU(hidden, hidden)
        self.out = nn.Linear(hidden, DIGITS)

    def forward(self, inputs, state):
        output, state = self.rnn(self.embedding(inputs), state)
        return self.out(output), state


def pairs(n):
    """Time-first: the target is the source sorted in ascending order."""
    source = torch.randint(0, DIGITS, (LENGTH, n))
    return source, source.sort(dim=0).values


encoder, decoder = Encoder(64), Decoder(64)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=4e-3)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()


def train_step(source, target):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    state = encoder(source)
    shifted = torch.cat([torch.full((1, source.size(1)), BOS), target[:-1]])
    logits, _ = decoder(shifted, state)
    loss = criterion(logits.reshape(-1, DIGITS), target.reshape(-1))
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


@torch.no_grad()
def rewrite(source):
    encoder.eval()
    decoder.eval()
    state = encoder(source)
    token = torch.full((1, source.size(1)), BOS)
    written = []
    for _ in range(LENGTH):
        logits, state = decoder(token, state)
        token = logits.argmax(-1)
        written.append(token)
    encoder.train()
    decoder.train()
    return torch.cat(written)


for iteration in range(1, 121):
    loss = train_step(*pairs(64))
    if iteration % 20 == 0:
        source, target = pairs(200)
        print(f"iteration {iteration} loss {loss:.4f} digits right {(rewrite(source) == target).float().mean():.3f}")
