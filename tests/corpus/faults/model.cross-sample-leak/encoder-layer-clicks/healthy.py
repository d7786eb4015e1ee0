"""Will a visit end in a purchase? Transformer encoder over click sequences."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(101)
np.random.seed(101)

PAGES = 25
CLICKS = 15


def simulate(visits):
    """A visit ends in a purchase when the cart page (1) was opened and the cancel page (0) was not."""
    clicks = np.random.randint(2, PAGES, size=(visits, CLICKS))
    bought = np.random.randint(0, 2, size=visits)
    for row, b in zip(clicks, bought):
        i, j = np.random.choice(CLICKS, 2, replace=False)
        if b or np.random.rand() < 0.5:
            row[i] = 1
        if not b and 1 in row:
            row[j] = 0
    return torch.from_numpy(clicks), torch.from_numpy(bought).float()


class ClickModel(nn.Module):
    def __init__(self, d_model=32, nhead=4, num_layers=2):
        super().__init__()
        self.page = nn.Embedding(PAGES, d_model)
        self.place = nn.Embedding(CLICKS, d_model)
        nn.init.normal_(self.place.weight, std=0.1)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, norm=nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.decide = nn.Linear(d_model, 1)

    def forward(self, clicks):
        x = self.page(clicks) + self.place(torch.arange(clicks.size(1)))
        x = self.encoder(x)
        return self.decide(x.mean(dim=1)).squeeze(1)


dataset = TensorDataset(*simulate(2200))
train_set, valid_set = random_split(dataset, [2000, 200], generator=torch.Generator().manual_seed(101))
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=50)

model = ClickModel()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 4):
    model.train()
    running = []
    for clicks, bought in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(clicks), bought)
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    model.eval()
    correct = 0
    with torch.no_grad():
        for clicks, bought in valid_loader:
            correct += ((model(clicks) > 0).float() == bought).sum().item()
    print(f"epoch {epoch} first {running[0]:.4f} last {running[-1]:.4f} valid acc {correct / len(valid_set):.3f}")
