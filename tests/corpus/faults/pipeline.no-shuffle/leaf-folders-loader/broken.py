import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(29)
SPECIES = ["ash", "beech", "cedar", "elm", "fir"]


class LeafFolders(Dataset):
    """One folder per species, read folder by folder."""

    def __init__(self, per_species, seed):
        g = torch.Generator().manual_seed(seed)
        shape = torch.Generator().manual_seed(1)
        prototypes = torch.randn(len(SPECIES), 12, generator=shape)
        self.samples = []
        for label in range(len(SPECIES)):
            for _ in range(per_species):
                self.samples.append((prototypes[label] + 1.2 * torch.randn(12, generator=g), label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


train_loader = DataLoader(LeafFolders(240, 7), batch_size=32)
val_loader = DataLoader(LeafFolders(40, 8), batch_size=50)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, len(SPECIES)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def validate():
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader) / 200


for epoch in range(3):
    model.train()
    epoch_loss = 0.0
    for leaves, species in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(leaves), species)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch} loss {epoch_loss / len(train_loader):.4f} val accuracy {validate():.3f}")
