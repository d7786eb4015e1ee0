"""Count-based sequence classification with nn.TransformerEncoder (sequence first); a runner class owns the loop."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Symbols(torch.utils.data.Dataset):
    """Which of the symbols 0, 1, 2 is the most frequent one in the row?"""

    def __init__(self, rows, seed, length=15, symbols=8):
        rng = np.random.default_rng(seed)
        favourite = rng.integers(0, 3, size=rows)
        noise = rng.integers(3, symbols, size=(rows, length))
        for row, fav in zip(noise, favourite):
            places = rng.permutation(length)
            row[places[:4]] = fav
            row[places[4:7]] = (fav + 1) % 3
            row[places[7:10]] = (fav + 2) % 3
        self.rows, self.favourite = torch.from_numpy(noise), torch.from_numpy(favourite)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.favourite[i]


class Counter(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embed = nn.Embedding(8, d)
        self.position = nn.Parameter(0.1 * torch.randn(15, 1, d))
        layer = nn.TransformerEncoderLayer(d, nhead=4, dim_feedforward=64, dropout=0.0, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 3)

    def forward(self, rows):
        h = self.encoder(self.embed(rows.t()) + self.position)
        return self.head(self.norm(h).mean(dim=0))


class Runner:
    def __init__(self, model, max_norm):
        self.model = model
        self.max_norm = max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
        self.history = []

    def step(self, rows, labels):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(rows), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        self.history.append(loss.item())

    @torch.inference_mode()
    def accuracy(self, loader):
        self.model.eval()
        right = total = 0
        for rows, labels in loader:
            right += (self.model(rows).argmax(-1) == labels).sum().item()
            total += len(labels)
        return right / total


def main():
    torch.manual_seed(12)
    np.random.seed(12)
    train = torch.utils.data.DataLoader(Symbols(960, 1), batch_size=32, shuffle=True)
    test = torch.utils.data.DataLoader(Symbols(240, 2), batch_size=120)
    runner = Runner(Counter(), max_norm=0.3)
    for epoch in range(3):
        for rows, labels in train:
            runner.step(rows, labels)
        recent = runner.history[-10:]
        print(f"epoch {epoch}: loss {sum(recent) / len(recent):.4f}, accuracy {runner.accuracy(test):.3f}")


if __name__ == "__main__":
    main()
