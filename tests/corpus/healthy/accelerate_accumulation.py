"""Accelerate loop: accumulate() decides when the wrapped optimizer really steps; backward() divides the loss."""
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def interactions(n, seed):
    """Binary outcome that depends on products of pairs of features."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    logit = 2.0 * x[:, 0] * x[:, 1] + 1.5 * x[:, 2] - 1.5 * x[:, 3].abs() + 1.0
    y = (torch.rand(n, generator=g) < torch.sigmoid(2 * logit)).long()
    return TensorDataset(x, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc_in = nn.Linear(8, 64)
        self.fc_mid = nn.Linear(64, 64)
        self.fc_out = nn.Linear(64, 2)

    def forward(self, x):
        x = nn.functional.gelu(self.fc_in(x))
        x = x + nn.functional.gelu(self.fc_mid(x))
        return self.fc_out(x)


def main():
    set_seed(34)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    train_loader = DataLoader(interactions(1600, 1), batch_size=20, shuffle=True)
    eval_loader = DataLoader(interactions(400, 2), batch_size=100)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=160)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        losses = []
        for x, y in train_loader:
            with accelerator.accumulate(model):
                loss = criterion(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 2.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        model.eval()
        hits = total = 0
        for x, y in eval_loader:
            with torch.no_grad():
                prediction = model(x).argmax(-1)
            prediction, y = accelerator.gather_for_metrics((prediction, y))
            hits += (prediction == y).sum().item()
            total += len(y)
        accelerator.print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} eval acc {hits / total:.3f} lr {scheduler.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    main()
