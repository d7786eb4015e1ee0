"""Masked-token reconstruction with a small Transformer encoder; the likelihood is written out by hand."""
import math

import torch
from torch import nn

MASK_ID = 0


class Corpus:
    """Arithmetic progressions modulo the vocabulary: any hole can be filled from its neighbours."""

    def __init__(self, vocab, length, seed):
        self.vocab, self.length = vocab, length
        self.gen = torch.Generator().manual_seed(seed)

    def sample(self, n):
        start = torch.randint(0, self.vocab - 1, (n, 1), generator=self.gen)
        stride = torch.randint(1, 4, (n, 1), generator=self.gen)
        rows = (start + stride * torch.arange(self.length)) % (self.vocab - 1) + 1
        hide = torch.randint(0, self.length, (n,), generator=self.gen)
        corrupted = rows.clone()
        corrupted[torch.arange(n), hide] = MASK_ID
        return corrupted, hide, rows[torch.arange(n), hide]


class Infiller(nn.Module):
    def __init__(self, vocab, length, width=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.position = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, vocab)

    def forward(self, tokens):
        where = torch.arange(tokens.size(1))
        states = self.encoder(self.embed(tokens) + self.position(where))
        return self.project(self.norm(states))


class InfillingTask:
    def __init__(self, vocab=14, length=8, batch_size=64, lr=0.05, seed=6):
        torch.manual_seed(seed)
        self.train_stream = Corpus(vocab, length, seed)
        self.valid_stream = Corpus(vocab, length, seed + 1)
        self.model = Infiller(vocab, length)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.batch_size = batch_size
        self.vocab = vocab

    def negative_log_likelihood(self, tokens, hide, answer):
        logits = self.model(tokens)[torch.arange(len(tokens)), hide]
        log_probs = torch.log_softmax(logits, dim=-1)
        picked = log_probs.gather(1, answer[:, None]).squeeze(1)
        return -picked.sum()

    def fit(self, steps):
        self.model.train()
        for step in range(1, steps + 1):
            loss = self.negative_log_likelihood(*self.train_stream.sample(self.batch_size))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step == 1 or step % 10 == 0:
                print(f"step {step:3d}  nll {loss.item():.4f}  (uniform {math.log(self.vocab):.3f} per token)")

    def score(self, n=512):
        self.model.eval()
        tokens, hide, answer = self.valid_stream.sample(n)
        with torch.no_grad():
            guess = self.model(tokens)[torch.arange(n), hide].argmax(-1)
        self.model.train()
        return (guess == answer).float().mean().item()


if __name__ == "__main__":
    task = InfillingTask()
    print(f"accuracy before training {task.score():.3f}")
    task.fit(steps=110)
    print(f"accuracy after training {task.score():.3f}")
