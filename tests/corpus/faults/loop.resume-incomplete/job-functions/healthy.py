"""Training that is cut into jobs: every job runs some steps and leaves a checkpoint for the next one."""
import os

import torch
import torch.nn as nn

CHECKPOINT = "model_last.pt"
FEATURES, CLASSES = 20, 6


def dataset(seed, n):
    g = torch.Generator().manual_seed(seed)
    prototypes = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    y = torch.randint(CLASSES, (n,), generator=g)
    x = 0.6 * prototypes[y] + torch.randn(n, FEATURES, generator=g)
    return x / 1.17, y


def save(model, optimizer, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
    }
    torch.save(state, CHECKPOINT + ".tmp")
    os.replace(CHECKPOINT + ".tmp", CHECKPOINT)


def job(last_step, x, y, x_test, y_test):
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.95)
    step = 0
    if os.path.exists(CHECKPOINT):
        state = torch.load(CHECKPOINT, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        step = state["step"]
        print(f"resumed at step {step}")
    while step < last_step:
        model.train()
        rows = torch.randint(len(x), (48,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 10 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} accuracy {accuracy:.3f}")
    save(model, optimizer, step)


if __name__ == "__main__":
    torch.manual_seed(1)
    x, y = dataset(11, 2000)
    x_test, y_test = dataset(12, 500)
    try:
        for last_step in (40, 80, 120):
            job(last_step, x, y, x_test, y_test)
    finally:
        if os.path.exists(CHECKPOINT):
            os.remove(CHECKPOINT)
