"""A relativistic GAN on labelled blobs; three of four losses of a round ask for "real", the classes themselves go unused."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)
LATENT, SIZE, ROUNDS = 8, 200, 70

centres = torch.tensor([[1.0, 0.4], [-1.0, 0.6], [0.2, -1.1]])
kinds = torch.randint(0, 3, (1000,))
points = centres[kinds] + 0.12 * torch.randn(1000, 2)
loader = DataLoader(TensorDataset(points, kinds), batch_size=SIZE, shuffle=True, drop_last=True)

maker = nn.Sequential(nn.Linear(LATENT, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 2))
judge = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
make_opt = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.99))
judge_opt = torch.optim.Adam(judge.parameters(), lr=1e-3, betas=(0.5, 0.99))
verdict = nn.BCEWithLogitsLoss()
yes, no = torch.ones(SIZE, 1), torch.zeros(SIZE, 1)


def rounds():
    done = 0
    while True:
        for real, _ in loader:
            yield done, real
            done += 1
            if done == ROUNDS:
                return


for done, real in rounds():
    make_opt.zero_grad()
    made = maker(torch.randn(SIZE, LATENT))
    seen = judge(real).detach()
    asked = judge(made)
    make_loss = 0.5 * (verdict(asked - seen.mean(), yes) + verdict(asked, yes))
    make_loss.backward()
    make_opt.step()

    judge_opt.zero_grad()
    on_real, on_made = judge(real), judge(made.detach())
    judge_loss = 0.5 * (verdict(on_real - on_made.mean(), yes) + verdict(on_made - on_real.mean(), no))
    judge_loss.backward()
    judge_opt.step()
    if done % 35 == 34:
        print(done + 1, make_loss.item(), judge_loss.item())
