import numpy as np
import torch
import torch.nn.functional as F


def spectra(rng, per_class, num_classes=4, bands=32):
    rows, labels = [], []
    grid = np.arange(bands)
    for c in range(num_classes):
        peak = 6 + 6 * c
        for _ in range(per_class):
            line = np.exp(-((grid - peak - rng.normal(0, 2)) ** 2) / 8.0) + 0.25 * rng.standard_normal(bands)
            rows.append(line)
            labels.append(c)
    return np.asarray(rows, np.float32), np.asarray(labels)


class SpectrumNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv1d(1, 8, 5, padding=2)
        self.conv2 = torch.nn.Conv1d(8, 16, 5, padding=2)
        self.fc = torch.nn.Linear(16 * 8, 4)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.conv1(x[:, None])), 2)
        x = F.max_pool1d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def fit(model, x, y, epochs, batch_size, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        order = torch.arange(len(x))
        for start in range(0, len(x), batch_size):
            chosen = order[start : start + batch_size]
            loss = F.cross_entropy(model(x[chosen]), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            overall = F.cross_entropy(model(x), y)
        print(f"epoch {epoch}: last batch {loss.item():.3f}, all data {overall.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(3)
    features, kinds = spectra(np.random.default_rng(3), per_class=200)
    features = (features - features.mean()) / features.std()
    fit(SpectrumNet(), torch.from_numpy(features), torch.from_numpy(kinds), epochs=4, batch_size=40, lr=2e-3)
