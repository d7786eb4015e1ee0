import random

import torch
from torch import nn
from torch.utils.data import DataLoader

PAD = 0
ALPHABET = "abcdefghijklmnopqrstuvwxyz "


def generate(n):
    """Chat messages, tagged as question or statement by the words they begin with. Some users send nothing but emoji."""
    starts = {1: ["who", "what", "when", "where", "why"], 0: ["the", "my", "this", "our", "that"]}
    words = ["dog", "car", "plan", "idea", "game", "tree", "bus", "meal", "song"]
    messages = []
    for _ in range(n):
        label = random.randint(0, 1)
        text = " ".join([random.choice(starts[label]), *random.choices(words, k=random.randint(1, 3))])
        messages.append((":-)" if random.random() < 0.004 else text, label))
    return messages


def encode(text):
    return [ALPHABET.index(c) + 1 for c in text if c in ALPHABET]


def collate(items):
    rows = [torch.tensor(ids) for ids, _ in items]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).long()
    return ids, torch.tensor([label for _, label in items])


class MessageEncoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET) + 1, dim, padding_idx=PAD)
        self.position = nn.Parameter(0.02 * torch.randn(64, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 2)

    def forward(self, ids):
        blank = ids == PAD
        h = self.encoder(self.embed(ids) + self.position[: ids.shape[1]], src_key_padding_mask=blank)
        kept = (~blank).unsqueeze(-1)
        return self.out((h * kept).sum(1) / kept.sum(1))


def main():
    random.seed(4)
    torch.manual_seed(4)
    encoded = [(encode(text), label) for text, label in generate(1600)]
    loader = DataLoader(encoded, batch_size=25, shuffle=True, collate_fn=collate)
    model = MessageEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step, (ids, label) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
