"""Route support tickets to one of five queues: bag of words, mean embedding, two linear layers."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

QUEUES = ["billing", "login", "shipping", "refund", "other"]


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--vocab", type=int, default=150)
    parser.add_argument("--seed", type=int, default=501)
    return parser.parse_args()


def make_tickets(count, vocab, rng):
    """Each queue has 20 words of its own; 30 % of a ticket comes from them, the rest from anywhere."""
    tickets, queues = [], []
    for _ in range(count):
        queue = rng.randrange(len(QUEUES))
        words = []
        for _ in range(rng.randint(8, 24)):
            if rng.random() < 0.3:
                words.append(queue * 20 + rng.randrange(20))
            else:
                words.append(rng.randrange(vocab))
        tickets.append(words)
        queues.append(queue)
    return tickets, torch.tensor(queues)


def collate(tickets, queues, rows):
    words = torch.tensor([w for r in rows for w in tickets[r]])
    lengths = torch.tensor([len(tickets[r]) for r in rows])
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])
    return words, offsets, queues[torch.as_tensor(rows)]


class TicketRouter(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.fc1 = nn.Linear(dim, 48)
        self.fc2 = nn.Linear(48, len(QUEUES))

    def forward(self, words, offsets):
        return self.fc2(F.relu(self.fc1(self.bag(words, offsets))))


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train_tickets, train_queues = make_tickets(1000, args.vocab, rng)
    dev_tickets, dev_queues = make_tickets(250, args.vocab, rng)

    model = TicketRouter(args.vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        model.train()
        order = np.random.permutation(len(train_tickets))
        running = []
        for start in range(0, len(order), args.batch_size):
            rows = order[start : start + args.batch_size].tolist()
            words, offsets, target = collate(train_tickets, train_queues, rows)
            loss = F.cross_entropy(model(words, offsets), target)
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
            running.append(loss.item())
        model.eval()
        with torch.no_grad():
            words, offsets, target = collate(dev_tickets, dev_queues, range(len(dev_tickets)))
            accuracy = (model(words, offsets).argmax(1) == target).float().mean().item()
        print(f"epoch {epoch}  train loss {sum(running) / len(running):.4f}  dev accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
