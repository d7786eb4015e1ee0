"""Recommender by matrix factorisation with sparse embedding gradients and SparseAdam: most rows get nothing in a step."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

USERS, ITEMS, RANK = 120, 90, 4
torch.manual_seed(23)


def ratings(n):
    u_true, i_true = torch.randn(USERS, RANK) / RANK**0.25, torch.randn(ITEMS, RANK) / RANK**0.25
    # every (user, item) pair at most once, so no pair can sit on both sides of the split
    pairs = torch.randperm(USERS * ITEMS)[:n]
    user, item = pairs // ITEMS, pairs % ITEMS
    score = (u_true[user] * i_true[item]).sum(1) + 0.2 * torch.randn(n)
    return user, item, score


class Factorization(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.user = nn.Embedding(USERS, dim, sparse=True)
        self.item = nn.Embedding(ITEMS, dim, sparse=True)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.item.weight, std=0.3)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(dim=1)


user, item, score = ratings(6000)
train = TensorDataset(user[:5000], item[:5000], score[:5000])
test = (user[5000:], item[5000:], score[5000:])
loader = DataLoader(train, batch_size=250, shuffle=True)

model = Factorization(8)
optimizer = optim.SparseAdam(list(model.parameters()), lr=2e-2)
for epoch in range(7):
    model.train()
    squared = 0.0
    for u, i, s in loader:
        loss = nn.functional.mse_loss(model(u, i), s)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        squared += loss.item() * len(s)
    model.eval()
    with torch.no_grad():
        test_mse = nn.functional.mse_loss(model(test[0], test[1]), test[2]).item()
    print(f"epoch {epoch} train mse {squared / len(train):.3f} test mse {test_mse:.3f} (variance of the ratings {score[:5000].var().item():.3f})")
