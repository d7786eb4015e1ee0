"""Transformer encoder with linear warm-up from a learning rate of exactly zero, then inverse square root decay."""
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR

WARMUP, STEPS = 25, 130


def lr_lambda(step):
    if step < WARMUP:
        return step / WARMUP  # the very first update has LR 0
    return (WARMUP / step) ** 0.5


class MajorityModel(nn.Module):
    """Which token occurs most often in the sequence?"""

    def __init__(self, vocab, length, dim=32):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Embedding(length, dim)
        nn.init.normal_(self.tokens.weight, std=0.5)
        nn.init.normal_(self.positions.weight, std=0.1)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classify = nn.Linear(dim, vocab)

    def forward(self, ids):
        h = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.classify(self.encoder(h).mean(1))


def sample(n, vocab, length, gen):
    answer = torch.randint(vocab, (n,), generator=gen)
    ids = torch.randint(vocab, (n, length), generator=gen)
    boost = torch.rand(n, length, generator=gen) < 0.45
    return torch.where(boost, answer[:, None], ids), answer


if __name__ == "__main__":
    torch.manual_seed(55)
    gen = torch.Generator().manual_seed(55)
    vocab, length = 10, 14
    model = MajorityModel(vocab, length)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    scheduler = LambdaLR(optimizer, lr_lambda)
    criterion = nn.CrossEntropyLoss()
    for step in range(STEPS):
        ids, answer = sample(48, vocab, length, gen)
        loss = criterion(model(ids), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == STEPS - 1:
            print(f"step {step:3d} lr {scheduler.get_last_lr()[0]:.2e} loss {loss.item():.3f}")
        scheduler.step()

    model.eval()
    with torch.no_grad():
        ids, answer = sample(256, vocab, length, torch.Generator().manual_seed(56))
        print("fresh accuracy", (model(ids).argmax(1) == answer).float().mean().item())
