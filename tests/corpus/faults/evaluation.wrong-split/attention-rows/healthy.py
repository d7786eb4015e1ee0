"""Find the largest number's colour: attention pooling over coloured numbers, rows split by an index file."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

COLOURS, ITEMS = 5, 7
SEED = 365


def make_rows(n):
    value = torch.randn(n, ITEMS)
    colour = torch.randint(COLOURS, (n, ITEMS))
    answer = colour.gather(1, value.argmax(1, keepdim=True)).squeeze(1)
    return value, colour, answer


class LargestColour(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.colour = nn.Embedding(COLOURS, d)
        self.value = nn.Linear(1, d)
        self.mix = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.importance = nn.Linear(d, 1, bias=False)
        self.answer = nn.Linear(d, COLOURS)

    def forward(self, value, colour):
        h = self.colour(colour) + self.value(value.unsqueeze(-1))
        h = h + self.mix(h)
        weight = self.importance(h).softmax(dim=1)
        return self.answer((weight * h).sum(dim=1))


def split(n, held_out):
    order = list(range(n))
    random.shuffle(order)
    return {"train": torch.tensor(order[held_out:]), "valid": torch.tensor(order[:held_out])}


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    rows = make_rows(1400)
    index = split(1400, held_out=280)

    def fetch(part):
        return [column[index[part]] for column in rows]

    train_value, train_colour, train_answer = fetch("train")
    valid_value, valid_colour, valid_answer = fetch("valid")
    model = LargestColour()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(4):
        model.train()
        losses = []
        for pick in torch.randperm(len(train_answer)).split(40):
            loss = F.cross_entropy(model(train_value[pick], train_colour[pick]), train_answer[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            hits = (model(valid_value, valid_colour).argmax(1) == valid_answer).float()
        print(f"epoch {epoch} train loss {sum(losses) / len(losses):.4f} validation accuracy {hits.mean().item():.3f}")


if __name__ == "__main__":
    main()
