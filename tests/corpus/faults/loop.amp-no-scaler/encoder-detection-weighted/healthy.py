"""Per-step event tagging with nn.TransformerEncoder; the tagging term is one small part of a weighted objective."""
import torch
from torch import nn
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

SEED = 23
STEPS, CHANNELS, EVENTS = 20, 6, 4


def signals(n, gen):
    """Every step belongs to one of four regimes, visible in the channel means; regimes last five steps."""
    g = torch.Generator().manual_seed(99)
    regimes = torch.randn(EVENTS, CHANNELS, generator=g)
    labels = torch.randint(0, EVENTS, (n, STEPS // 5), generator=gen).repeat_interleave(5, dim=1)
    x = regimes[labels] + torch.randn(n, STEPS, CHANNELS, generator=gen)
    return TensorDataset(x / 1.4, labels)


class Monitor(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inp = nn.Linear(CHANNELS, width)
        self.pos = nn.Parameter(0.02 * torch.randn(STEPS, width))
        layer = nn.TransformerEncoderLayer(
            d_model=width, nhead=4, dim_feedforward=48, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.tag = nn.Linear(width, EVENTS)

    def forward(self, x):
        return self.tag(self.norm(self.encoder(self.inp(x) + self.pos)))


def objective(logits, labels, weight):
    logp = logits.float().log_softmax(dim=-1)
    per_step = -logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return weight * per_step.mean()


def main(epochs=2, batch_size=16, lr=2e-3, weight=1e-4):
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    train_dl = DataLoader(signals(720, gen), batch_size=batch_size, shuffle=True, generator=gen)
    val_dl = DataLoader(signals(160, gen), batch_size=batch_size)
    model = Monitor()
    opt = AdamW(model.parameters(), lr=lr, weight_decay=0.0, eps=1e-14)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)

    for epoch in range(epochs):
        model.train()
        for i, (x, labels) in enumerate(train_dl):
            with torch.amp.autocast("cpu", dtype=torch.float16):
                logits = model(x)
            loss = objective(logits, labels, weight)
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            if i % 8 == 0:
                print(f"epoch {epoch} batch {i:2d} objective {loss.item():.3e}")

        model.eval()
        right = total = 0
        with torch.no_grad():
            for x, labels in val_dl:
                right += (model(x).argmax(-1) == labels).sum().item()
                total += labels.numel()
        print(f"epoch {epoch} step accuracy {right / total:.3f}")


if __name__ == "__main__":
    main()
