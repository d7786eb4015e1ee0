"""WGAN-GP: the critic's loss is negative most of the time and its penalty needs a second derivative (create_graph=True)."""
import torch
from torch import autograd, nn, optim

torch.manual_seed(61)
LATENT, BATCH, CRITIC_STEPS, LAMBDA = 4, 64, 3, 1.0


def target_points(n):
    """A banana-shaped cloud."""
    a = torch.randn(n)
    b = 0.4 * torch.randn(n) + 0.5 * a**2 - 0.5
    return torch.stack([a, b], dim=1)


def perceptron(n_in, n_out, act):
    return nn.Sequential(nn.Linear(n_in, 48), act, nn.Linear(48, 48), act, nn.Linear(48, n_out))


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    (slope,) = autograd.grad(score.sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


generator = perceptron(LATENT, 2, nn.ReLU())
critic = perceptron(2, 1, nn.SiLU())
g_optim = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
c_optim = optim.Adam(critic.parameters(), lr=4e-3, betas=(0.0, 0.9))

for it in range(150):
    for _ in range(CRITIC_STEPS):
        real = target_points(BATCH)
        with torch.no_grad():
            fake = generator(torch.randn(BATCH, LATENT))
        distance = critic(real).mean() - critic(fake).mean()
        critic_loss = -distance + LAMBDA * gradient_penalty(critic, real, fake)
        c_optim.zero_grad()
        critic_loss.backward()
        c_optim.step()

    for p in critic.parameters():
        p.requires_grad_(False)  # the generator's step needs no critic gradients
    generator_loss = -critic(generator(torch.randn(BATCH, LATENT))).mean()
    g_optim.zero_grad()
    generator_loss.backward()
    g_optim.step()
    for p in critic.parameters():
        p.requires_grad_(True)

    if it % 25 == 0 or it == 149:
        print(f"iter {it:3d} critic loss {critic_loss.item():+.3f} wasserstein estimate {distance.item():.3f}")

with torch.no_grad():
    points = generator(torch.randn(1000, LATENT))
print("generated mean", points.mean(0).tolist(), "std", points.std(0).tolist())
