"""An MLP with a lot of dropout: the training loss stays above the validation loss for the whole run."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


def build_dataset(n: int = 1600, d: int = 24, classes: int = 4) -> TensorDataset:
    g = torch.Generator().manual_seed(31)
    prototypes = torch.randn(classes, 2, d, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    variant = torch.randint(0, 2, (n,), generator=g)
    x = prototypes[y, variant] + 0.9 * torch.randn(n, d, generator=g)
    return TensorDataset(x / 1.3, y)


class Regularised(nn.Module):
    def __init__(self, d: int, classes: int, width: int = 128, p: float = 0.5):
        super().__init__()
        self.input_drop = nn.Dropout(0.2)
        self.fc1 = nn.Linear(d, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, classes)
        self.drop = nn.Dropout(p)
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.input_drop(x)
        x = self.drop(self.act(self.fc1(x)))
        x = self.drop(self.act(self.fc2(x)))
        return self.fc3(x)


def run_epoch(model, loader, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    loss_sum = correct = seen = 0
    with torch.set_grad_enabled(training):
        for inputs, labels in loader:
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * inputs.size(0)
            correct += (outputs.argmax(dim=1) == labels).sum().item()
            seen += inputs.size(0)
    return loss_sum / seen, correct / seen


def main():
    torch.manual_seed(0)
    train_set, val_set = random_split(build_dataset(), [1280, 320], generator=torch.Generator().manual_seed(1))
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=128)
    net = Regularised(24, 4)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(net.parameters(), lr=1.5e-3)
    for epoch in range(7):
        tl, ta = run_epoch(net, train_loader, criterion, optimizer)
        vl, va = run_epoch(net, val_loader, criterion)
        print(f"[{epoch}] train {tl:.3f}/{ta:.2f}  val {vl:.3f}/{va:.2f}")


if __name__ == "__main__":
    main()
