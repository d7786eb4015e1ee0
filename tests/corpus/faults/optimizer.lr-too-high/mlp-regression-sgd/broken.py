"""Fit a smooth function of eight variables with a small MLP and plain SGD."""
import torch
import torch.nn as nn

torch.manual_seed(0)

# ------------------------------------------------------------------ data
n_features = 8
x = torch.randn(2048, n_features)
w1, w2 = torch.randn(n_features), torch.randn(n_features)
target = torch.tanh(x @ w1 / 2) + 0.5 * torch.sin(x @ w2 / 2) + 0.05 * torch.randn(2048)
x_tr, y_tr = x[:1792], target[:1792].unsqueeze(1)
x_te, y_te = x[1792:], target[1792:].unsqueeze(1)
y_mean, y_std = y_tr.mean(), y_tr.std()
y_tr = (y_tr - y_mean) / y_std
y_te = (y_te - y_mean) / y_std

# ------------------------------------------------------------------ model
net = nn.Sequential(
    nn.Linear(n_features, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
)
opt = torch.optim.SGD(net.parameters(), lr=2.0)
mse = nn.MSELoss()
print(net)
print(f"{sum(p.numel() for p in net.parameters())} parameters, {len(x_tr)} training rows")

# ------------------------------------------------------------------ training
batch_size = 64
step = 0
for epoch in range(3):
    shuffled = torch.randperm(len(x_tr))
    for chunk in shuffled.split(batch_size):
        xb, yb = x_tr[chunk], y_tr[chunk]
        opt.zero_grad()
        pred = net(xb)
        loss = mse(pred, yb)
        loss.backward()
        opt.step()
        if step % 7 == 0:
            print(f"step {step:4d}  loss {loss.item():.5f}")
        step += 1

    net.eval()
    with torch.no_grad():
        test_loss = mse(net(x_te), y_te).item()
    net.train()
    print(f"== epoch {epoch}  test mse {test_loss:.5f}")

with torch.no_grad():
    net.eval()
    residual = y_te - net(x_te)
    r2 = 1 - (residual.pow(2).sum() / (y_te - y_te.mean()).pow(2).sum()).item()
    worst = residual.abs().max().item()
print(f"worst held-out residual: {worst:.3f} standard deviations")
print(f"final r2 on held-out data: {r2:.3f}")
