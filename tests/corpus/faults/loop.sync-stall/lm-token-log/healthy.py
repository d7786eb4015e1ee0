"""Small decoder on a synthetic grammar, on one GPU."""
import torch
from torch import nn
from torch.nn import functional as F


class Decoder(nn.Module):
    def __init__(self, vocabulary=32, width=64, context=24):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        block = nn.TransformerEncoderLayer(width, 4, 128, 0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)
        self.register_buffer("mask", torch.triu(torch.full((context, context), float("-inf")), 1))

    def forward(self, ids):
        h = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.blocks(h, mask=self.mask[: ids.shape[1], : ids.shape[1]]))


class Trainer:
    def __init__(self):
        torch.manual_seed(5)
        self.device = torch.device("cuda")
        self.model = Decoder().to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.01)
        self.follow = torch.randint(32, (32, 3))
        self.by_place = torch.zeros(24, device=self.device)

    def batch(self, size=48):
        ids = torch.randint(32, (size, 25))
        for t in range(1, 25):
            ids[:, t] = self.follow[ids[:, t - 1], torch.randint(3, (size,))]
        return ids[:, :-1].to(self.device), ids[:, 1:].to(self.device)

    def step(self):
        ids, following = self.batch()
        each = F.cross_entropy(self.model(ids).transpose(1, 2), following, reduction="none")
        loss = each.mean()
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.by_place = 0.9 * self.by_place + 0.1 * each.detach().mean(0)
        return loss

    def fit(self, steps=90):
        for step in range(steps):
            loss = self.step()
            if step % 30 == 0:
                print(step, round(loss.item(), 4), [round(v, 2) for v in self.by_place[:4].tolist()])


Trainer().fit()
