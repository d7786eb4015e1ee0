import random

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader

random.seed(3)
torch.manual_seed(8)

WORDS = ["awful", "broken", "bad", "late", "okay", "fine", "decent", "good", "nice", "great", "superb", "perfect", "the", "it", "was", "a"]
INDEX = {w: i for i, w in enumerate(WORDS)}


def write_review(stars):
    centre = (stars - 1) * 2.6
    words = [WORDS[max(0, min(11, round(random.gauss(centre, 1.3))))] for _ in range(random.randint(3, 7))]
    return words + random.choices(WORDS[12:], k=4)


def make_corpus(n):
    stars = random.choices([1, 2, 3, 4, 5], weights=[25, 25, 25, 25, 0.4], k=n)
    return [(write_review(s), s) for s in stars]


def collate(batch):
    bags = torch.zeros(len(batch), len(WORDS))
    for row, (words, _) in enumerate(batch):
        for w in words:
            bags[row, INDEX[w]] += 1.0
    targets = torch.tensor([stars for _, stars in batch])
    return bags / bags.sum(1, keepdim=True), targets


class ReviewNet(nn.Module):
    def __init__(self, num_words, num_stars=5):
        super().__init__()
        self.hidden = nn.Linear(num_words, 64)
        self.out = nn.Linear(64, num_stars)

    def forward(self, bags):
        return self.out(torch.tanh(self.hidden(bags)))


def main():
    reviews = make_corpus(1600)
    loader = DataLoader(reviews, batch_size=20, shuffle=True, collate_fn=collate)
    net = ReviewNet(len(WORDS))
    opt = optim.Adam(net.parameters(), lr=5e-3)
    step = 0
    for epoch in range(1):
        for bags, stars in loader:
            loss = F.cross_entropy(net(bags), stars)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(step, round(loss.item(), 4))
            step += 1


main()
