"""House prices with categorical embeddings, PyTorch Lightning."""
import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUMERIC = ["area", "rooms", "age", "distance"]
CATEGORICAL = {"district": 8, "heating": 3}


def make_frame(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "area": rng.gamma(6, 15, n),
            "rooms": rng.integers(1, 7, n),
            "age": rng.uniform(0, 80, n),
            "distance": rng.exponential(5, n),
            "district": rng.integers(0, 8, n),
            "heating": rng.integers(0, 3, n),
        }
    )
    price = 2.2 * df.area + 12 * df.rooms - 0.8 * df.age - 5 * df.distance + 18 * df.district + 9 * df.heating
    df["price"] = price + rng.normal(0, 12, n)
    return df


class Houses(Dataset):
    def __init__(self, df, stats):
        mean, std = stats
        self.num = ((df[NUMERIC] - mean[NUMERIC]) / std[NUMERIC]).to_numpy(dtype=np.float32)
        self.cat = df[list(CATEGORICAL)].to_numpy(dtype=np.int64)
        self.price = ((df.price - mean.price) / std.price).to_numpy(dtype=np.float32)

    def __len__(self):
        return len(self.price)

    def __getitem__(self, i):
        return self.num[i], self.cat[i], self.price[i]


class PriceModel(pl.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.embeddings = nn.ModuleList([nn.Embedding(n, 6) for n in CATEGORICAL.values()])
        self.mlp = nn.Sequential(
            nn.Linear(len(NUMERIC) + 6 * len(CATEGORICAL), 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)
        )

    def forward(self, num, cat):
        parts = [emb(cat[:, i]) for i, emb in enumerate(self.embeddings)]
        return self.mlp(torch.cat([num, *parts], dim=1))

    def training_step(self, batch, batch_idx):
        num, cat, price = batch
        pred = self(num, cat).squeeze(1)
        loss = F.smooth_l1_loss(pred, price)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        num, cat, price = batch
        pred = self(num, cat).squeeze(1)
        self.log("val_mae", F.l1_loss(pred, price))

    def on_validation_epoch_end(self):
        print(f"val_mae {self.trainer.callback_metrics['val_mae'].item():.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    pl.seed_everything(77)
    train_df, val_df = make_frame(1000, 1), make_frame(200, 2)
    stats = train_df.mean(), train_df.std()
    trainer = pl.Trainer(
        max_epochs=5, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )
    trainer.fit(
        PriceModel(),
        DataLoader(Houses(train_df, stats), batch_size=40, shuffle=True),
        DataLoader(Houses(val_df, stats), batch_size=200),
    )
