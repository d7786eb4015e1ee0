"""Customer churn from mixed tabular features, as a LightningModule."""

import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

PLANS, REGIONS, NUMERIC = 6, 9, 8


class ChurnData(L.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        rng = np.random.default_rng(8)
        n = 3200
        plan = rng.integers(0, PLANS, n)
        region = rng.integers(0, REGIONS, n)
        numeric = rng.normal(size=(n, NUMERIC)).astype(np.float32)
        plan_effect = rng.normal(size=PLANS) * 1.2
        score = numeric[:, 0] * numeric[:, 1] + numeric[:, 2] - 0.5 * numeric[:, 3] ** 2 + 0.5
        score = score + plan_effect[plan] + 0.4 * (region % 3 - 1)
        churn = (score + rng.logistic(size=n) * 0.4 > np.median(score)).astype(np.float32)
        columns = [torch.from_numpy(a) for a in (plan, region, numeric, churn)]
        self.train_set = TensorDataset(*[c[:2560] for c in columns])
        self.val_set = TensorDataset(*[c[2560:] for c in columns])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=256)


class FeatureEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.plan = nn.Embedding(PLANS, 8)
        self.region = nn.Embedding(REGIONS, 8)
        self.mlp = nn.Sequential(
            nn.Linear(16 + NUMERIC, width),
            nn.LayerNorm(width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
        )

    def forward(self, plan, region, numeric):
        return self.mlp(torch.cat([self.plan(plan), self.region(region), numeric], dim=-1))


class ChurnModel(L.LightningModule):
    def __init__(self, width=48, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = FeatureEncoder(width)
        self.head = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, 1))

    def forward(self, plan, region, numeric):
        return self.head(self.encoder(plan, region, numeric)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        *features, churn = batch
        loss = F.binary_cross_entropy_with_logits(self(*features), churn)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        *features, churn = batch
        logits = self(*features)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, churn))
        self.log("val_acc", ((logits > 0).float() == churn).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print({k: round(float(v), 4) for k, v in m.items()})

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer}


if __name__ == "__main__":
    L.seed_everything(17)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(ChurnModel(), datamodule=ChurnData())
