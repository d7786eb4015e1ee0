"""Readmission risk per visit: patients are kept apart between the splits, wards and visit days are not."""

from dataclasses import dataclass

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.model_selection import GroupShuffleSplit
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Visits:
    patient_id: np.ndarray
    ward_id: np.ndarray
    day: np.ndarray
    labs: np.ndarray
    readmitted: np.ndarray


def collect(num_patients=260, num_wards=7, seed=19):
    rng = np.random.default_rng(seed)
    ward_risk = rng.normal(0, 0.8, num_wards)
    patient, ward, day, labs, outcome = [], [], [], [], []
    for pid in range(num_patients):
        home_ward = rng.integers(num_wards)
        level = rng.normal(0, 0.4, 5)
        for _ in range(rng.integers(2, 8)):
            values = level + rng.normal(0, 1, 5)
            risk = 1.3 * values[0] - 1.1 * values[2] + 0.7 * values[4] + ward_risk[home_ward]
            patient.append(pid)
            ward.append(home_ward)
            day.append(rng.integers(0, 365))
            labs.append(values * [12, 0.4, 30, 2, 5] + [140, 4.1, 90, 7, 38])
            outcome.append(rng.random() < 1 / (1 + np.exp(-1.6 * risk)))
    return Visits(np.array(patient), np.array(ward), np.array(day), np.array(labs), np.array(outcome, dtype=np.float32))


class VisitData(pl.LightningDataModule):
    def __init__(self, visits, batch_size=32):
        super().__init__()
        self.visits, self.batch_size = visits, batch_size

    def setup(self, stage):
        v = self.visits
        split = GroupShuffleSplit(n_splits=1, test_size=0.2, random_state=2)
        train, val = next(split.split(v.labs, v.readmitted, groups=v.patient_id))
        scaler = StandardScaler().fit(v.labs[train])
        season = 2 * np.pi * v.day / 365

        def rows(index):
            numeric = np.column_stack([scaler.transform(v.labs[index]), np.sin(season[index]), np.cos(season[index])])
            return TensorDataset(
                torch.from_numpy(v.patient_id[index]),
                torch.from_numpy(v.ward_id[index]),
                torch.tensor(numeric, dtype=torch.float32),
                torch.from_numpy(v.readmitted[index]),
            )

        self.train, self.val = rows(train), rows(val)

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, 64)


class RiskModel(pl.LightningModule):
    def __init__(self, num_wards):
        super().__init__()
        self.ward = nn.Embedding(num_wards, 4)
        self.net = nn.Sequential(nn.Linear(7 + 4, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 1))

    def forward(self, ward, numeric):
        return self.net(torch.cat([self.ward(ward), numeric], dim=1)).squeeze(1)

    def step(self, batch, name):
        _, ward, numeric, readmitted = batch
        logits = self(ward, numeric)
        loss = F.binary_cross_entropy_with_logits(logits, readmitted)
        hits = ((logits > 0) == (readmitted > 0.5)).float().mean()
        self.log_dict({f"{name}_loss": loss, f"{name}_acc": hits}, on_epoch=True, on_step=False, batch_size=len(ward))
        return loss

    def training_step(self, batch, _):
        return self.step(batch, "train")

    def validation_step(self, batch, _):
        self.step(batch, "val")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-3, weight_decay=0.0)


def main():
    pl.seed_everything(19, verbose=False)
    visits = collect()
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(RiskModel(int(visits.ward_id.max()) + 1), datamodule=VisitData(visits))
    for name, value in sorted(trainer.callback_metrics.items()):
        print(name, round(float(value), 4))


if __name__ == "__main__":
    main()
