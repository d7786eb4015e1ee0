"""Variational autoencoder in Lightning with manual optimisation."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Vae(L.LightningModule):
    def __init__(self, inputs=16, hidden=48, latent=4, lr=3e-3):
        super().__init__()
        self.automatic_optimization = False
        self.lr = lr
        self.enc = nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, inputs))
        self.curve = []

    def elbo(self, x):
        mean, log_var = self.enc(x).chunk(2, -1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        fit = F.mse_loss(self.dec(z), x, reduction="none").sum(-1).mean()
        kl = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(-1).mean()
        return fit + 0.1 * kl

    def training_step(self, batch, _):
        (x,) = batch
        opt = self.optimizers()
        loss = self.elbo(x)
        opt.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(opt, gradient_clip_val=5.0, gradient_clip_algorithm="norm")
        opt.step()
        self.curve.append(loss.item())

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} elbo {sum(self.curve) / len(self.curve):.3f}")
        self.curve.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def latent_factors(n):
    causes = torch.randn(n, 3)
    x = torch.tanh(causes @ torch.randn(3, 16)) + 0.05 * torch.randn(n, 16)
    return TensorDataset((x - x.mean(0)) / x.std(0))


L.seed_everything(21, verbose=False)
loader = DataLoader(latent_factors(1280), batch_size=64, shuffle=True)
trainer = L.Trainer(
    max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
)
trainer.fit(Vae(), loader)
