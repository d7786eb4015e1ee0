"""Metric learning with all triplets of a batch on unit embeddings; distances from the Gram matrix."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(46)

PEOPLE, PER_PERSON, INPUT = 12, 4, 24
prototypes = torch.randn(60, INPUT)


class Embedder(nn.Module):
    def __init__(self, out=16):
        super().__init__()
        self.fc1 = nn.Linear(INPUT, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, out)

    def forward(self, x):
        x = F.gelu(self.fc1(x))
        x = F.gelu(self.fc2(x))
        return F.normalize(self.fc3(x), dim=1)


def pairwise_distance(embeddings):
    similarity = embeddings @ embeddings.t()
    squared = 2.0 - 2.0 * similarity
    return squared.clamp(min=1e-6).sqrt()


def triplet_loss(embeddings, identity, margin=0.4):
    """Soft-margin loss over all (anchor, positive, negative) of the batch."""
    distance = pairwise_distance(embeddings)
    same = identity[:, None] == identity[None, :]
    gap = distance[:, :, None] - distance[:, None, :] + margin
    valid = same[:, :, None] & ~same[:, None, :]
    return F.softplus(gap[valid] * 4.0).mean() / 4.0


def draw(pool):
    who = pool[torch.randperm(len(pool))[:PEOPLE]].repeat_interleave(PER_PERSON)
    return (prototypes[who] + 0.6 * torch.randn(len(who), INPUT)) / 1.17, who


@torch.no_grad()
def retrieval(model, pool):
    model.eval()
    x, who = draw(pool)
    e = model(x)
    score = (e @ e.t()).fill_diagonal_(-1.0)
    model.train()
    return (who[score.argmax(dim=1)] == who).float().mean().item()


known, unseen = torch.arange(0, 45), torch.arange(45, 60)
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(100):
    x, who = draw(known)
    loss = triplet_loss(model(x), who)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:3d} loss {loss.item():.4f} retrieval on unseen people {retrieval(model, unseen):.3f}")
