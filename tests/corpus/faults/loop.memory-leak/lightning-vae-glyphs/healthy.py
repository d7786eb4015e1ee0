"""A small VAE over synthetic glyphs, trained with Lightning."""

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 12


def draw_glyphs(count, rng):
    images = np.zeros((count, SIDE, SIDE), dtype=np.float32)
    for image in images:
        row, col = rng.integers(1, SIDE - 2, size=2)
        if rng.random() < 0.7:
            image[row : row + 2, :] = 1.0
        if rng.random() < 0.7:
            image[:, col : col + 2] = 1.0
        image += 0.1 * rng.random((SIDE, SIDE)) * (1 - 2 * image)  # the scanner's grey levels
    return torch.from_numpy(images).flatten(1)


class GlyphVAE(L.LightningModule):
    def __init__(self, latent=8, hidden=96, beta=0.2, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, SIDE * SIDE))
        self.reconstruction_curve = []
        self.kl_curve = []

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar

    def loss_terms(self, x):
        logits, mu, logvar = self(x)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=1).mean()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
        return reconstruction, kl

    def training_step(self, batch, batch_idx):
        reconstruction, kl = self.loss_terms(batch[0])
        self.reconstruction_curve.append(reconstruction.detach())
        self.kl_curve.append(kl.detach())
        return reconstruction + self.hparams.beta * kl

    def validation_step(self, batch, batch_idx):
        reconstruction, kl = self.loss_terms(batch[0])
        self.log("val_elbo", reconstruction + kl)

    def on_train_end(self):
        curve = torch.stack(self.reconstruction_curve)
        kl = torch.stack(self.kl_curve)
        print(f"reconstruction {curve[:10].mean():.2f} -> {curve[-10:].mean():.2f}, kl {kl[-10:].mean():.2f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(7)
    rng = np.random.default_rng(7)
    train = DataLoader(TensorDataset(draw_glyphs(640, rng)), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(draw_glyphs(128, rng)), batch_size=64)
    model = GlyphVAE()
    trainer = L.Trainer(
        max_epochs=8,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, train, val)
    print({name: round(float(value), 2) for name, value in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
