"""House prices from tabular features. A batch is cut into chunks so that it fits into memory."""
import torch
import torch.nn.functional as F

torch.manual_seed(2024)
generator = torch.Generator().manual_seed(5)

N_TRAIN, N_TEST, FEATURES = 2048, 512, 14
BATCH, CHUNKS, STEPS = 128, 8, 90


def synth(n):
    area, rooms = torch.randn(n, generator=generator), torch.randn(n, generator=generator)
    rest = torch.randn(n, FEATURES - 2, generator=generator)
    price = 0.8 * area + 0.3 * rooms * torch.sigmoid(area) + 0.4 * torch.sin(2 * rest[:, 0]) + 0.2 * rest[:, 1]
    price = price + 0.1 * torch.randn(n, generator=generator)
    return torch.cat([area[:, None], rooms[:, None], rest], dim=1), price


def init_layer(fan_in, fan_out):
    w = (torch.randn(fan_in, fan_out) * fan_in**-0.5).requires_grad_()
    b = torch.zeros(fan_out, requires_grad=True)
    return w, b


def forward(params, x):
    *hidden, (w, b) = params
    for w_h, b_h in hidden:
        x = torch.tanh(x @ w_h + b_h)
    return (x @ w + b).squeeze(1)


def train_step(params, optimizer, x, y):
    optimizer.zero_grad()
    reported = 0.0
    for xc, yc in zip(x.chunk(CHUNKS), y.chunk(CHUNKS)):
        loss = F.mse_loss(forward(params, xc), yc)
        reported += loss.item() / CHUNKS
        loss = loss / CHUNKS
        loss.backward()
    optimizer.step()
    return reported


x_train, y_train = synth(N_TRAIN)
x_test, y_test = synth(N_TEST)
mu, sigma = y_train.mean(), y_train.std()
y_train, y_test = (y_train - mu) / sigma, (y_test - mu) / sigma

params = [init_layer(FEATURES, 40), init_layer(40, 40), init_layer(40, 1)]
optimizer = torch.optim.SGD([t for layer in params for t in layer], lr=0.03, momentum=0.9)

step = 0
while step < STEPS:
    for rows in torch.randperm(N_TRAIN).split(BATCH):
        value = train_step(params, optimizer, x_train[rows], y_train[rows])
        if step % 15 == 0:
            with torch.no_grad():
                test = F.mse_loss(forward(params, x_test), y_test).item()
            print(f"step {step:3d} train {value:.4f} test {test:.4f}")
        step += 1
        if step == STEPS:
            break
print("done")
