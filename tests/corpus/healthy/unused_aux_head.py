"""A model with an auxiliary head that this configuration does not use. It says so, and it stays out of the optimizer's way."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TwoHeadNet(nn.Module):
    def __init__(self, use_aux):
        super().__init__()
        self.use_aux = use_aux
        self.stage1 = nn.Sequential(nn.Linear(14, 48), nn.LayerNorm(48), nn.ReLU())
        self.stage2 = nn.Sequential(nn.Linear(48, 48), nn.LayerNorm(48), nn.ReLU())
        self.head = nn.Linear(48, 4)
        self.aux_head = nn.Linear(48, 4)  # kept so that checkpoints of both configurations load

    def forward(self, x):
        mid = self.stage1(x)
        main = self.head(self.stage2(mid))
        return (main, self.aux_head(mid)) if self.use_aux else (main, None)


def sectors(n, gen):
    x = torch.randn(n, 14, generator=gen)
    angle = torch.atan2(x[:, 0] + 0.3 * x[:, 2], x[:, 1] - 0.3 * x[:, 3])
    return x, ((angle + torch.pi) / (torch.pi / 2)).long().clamp(max=3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--aux-weight", type=float, default=0.0)
    args = parser.parse_args()
    torch.manual_seed(82)
    gen = torch.Generator().manual_seed(82)
    use_aux = args.aux_weight > 0
    model = TwoHeadNet(use_aux)
    if not use_aux:
        print("note: aux_head is not used in this run (aux weight 0) and will not change")
    train = DataLoader(TensorDataset(*sectors(1500, gen)), batch_size=60, shuffle=True)
    x_val, y_val = sectors(300, gen)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        model.train()
        total = 0.0
        for x, y in train:
            main_logits, aux_logits = model(x)
            loss = criterion(main_logits, y)
            if use_aux:
                loss = loss + args.aux_weight * criterion(aux_logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val)[0].argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train):.3f} val accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
