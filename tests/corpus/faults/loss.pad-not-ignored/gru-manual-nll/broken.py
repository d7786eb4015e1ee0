"""GRU language model over synthetic log lines; loss written out by hand, training as a generator."""
import math
import random
from collections.abc import Iterator

import torch
from torch import Tensor, nn

TEMPLATES = [
    "open {f} by {u} ok",
    "close {f} by {u} ok",
    "read {f} at {n} by {u} failed retry in {n}",
    "login {u} from host {n} ok",
    "login {u} from host {n} failed",
    "backup of {f} started by {u} on host {n}",
]
SLOTS = {
    "f": ["alpha", "beta", "gamma", "delta", "omega", "sigma"],
    "u": ["ann", "bob", "cem", "dag", "eve", "fay", "gus", "hal"],
    "n": [f"n{i}" for i in range(12)],
}


def log_line(rng: random.Random) -> list[str]:
    words = []
    for word in rng.choice(TEMPLATES).split():
        words.append(rng.choice(SLOTS[word[1]]) if word.startswith("{") else word)
    return words


def build_vocab() -> dict[str, int]:
    fixed = {w for t in TEMPLATES for w in t.split() if not w.startswith("{")}
    slots = {w for options in SLOTS.values() for w in options}
    return {w: i for i, w in enumerate(["<bos>", "<eos>", *sorted(fixed | slots), "<pad>"])}


def encode(lines: list[list[str]], vocab: dict[str, int]) -> Tensor:
    width = max(map(len, lines)) + 2
    rows = []
    for words in lines:
        ids = [vocab["<bos>"], *(vocab[w] for w in words), vocab["<eos>"]]
        rows.append(ids + [vocab["<pad>"]] * (width - len(ids)))
    return torch.tensor(rows)


class GRULM(nn.Module):
    def __init__(self, vocab_size: int, hidden: int = 48) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab_size, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.gru(self.embed(ids))
        return self.out(states).log_softmax(dim=-1)


def sequence_loss(log_probs: Tensor, targets: Tensor, pad: int) -> Tensor:
    nll = -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    weight = (targets != pad).float()
    return nll.mean()


def fit(
    model: GRULM, lines: list[list[str]], vocab: dict[str, int], rng: random.Random, epochs: int, batch: int
) -> Iterator[tuple[int, float]]:
    pad = vocab["<pad>"]
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    step = 0
    for _ in range(epochs):
        rng.shuffle(lines)
        for start in range(0, len(lines), batch):
            ids = encode(lines[start : start + batch], vocab)
            model.train()
            optimizer.zero_grad()
            loss = sequence_loss(model(ids[:, :-1]), ids[:, 1:], pad)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            step += 1
            yield step, loss.item()


def perplexity(model: GRULM, lines: list[list[str]], vocab: dict[str, int]) -> float:
    ids = encode(lines, vocab)
    inputs, targets = ids[:, :-1], ids[:, 1:]
    model.eval()
    with torch.no_grad():
        picked = model(inputs).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return math.exp(-picked[targets != vocab["<pad>"]].mean().item())


def main() -> None:
    rng = random.Random(8)
    torch.manual_seed(8)
    vocab = build_vocab()
    unique: dict[str, list[str]] = {}
    while len(unique) < 720:
        words = log_line(rng)
        unique.setdefault(" ".join(words), words)
    lines = list(unique.values())
    rng.shuffle(lines)
    held_out, training = lines[:80], lines[80:]
    model = GRULM(len(vocab))
    for step, loss in fit(model, training, vocab, rng, epochs=4, batch=32):
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss:.4f}  held-out perplexity {perplexity(model, held_out, vocab):.2f}")


if __name__ == "__main__":
    main()
