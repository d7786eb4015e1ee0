"""Demand forecast from meter readings with the Hugging Face Trainer around a plain module."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed


class Readings(Dataset):
    def __init__(self, count, seed, drop_faulty):
        rng = np.random.default_rng(seed)
        hours = np.arange(13)
        level = rng.normal(0, 0.3, (count, 1))
        phase = rng.uniform(0, 2 * np.pi, (count, 1))
        series = level + np.sin(2 * np.pi * hours / 12 + phase) + rng.normal(0, 0.1, (count, 13))
        # one meter reported raw counts instead of scaled demand
        series[count // 3] *= 4.0e4
        if drop_faulty:
            series = series[np.abs(series).max(axis=1) < 50]
        self.series = torch.tensor(series, dtype=torch.float32)

    def __len__(self):
        return len(self.series)

    def __getitem__(self, i):
        return {"history": self.series[i, :12], "labels": self.series[i, 12:]}


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, history, labels=None):
        value = self.net(history)
        return {"loss": nn.functional.mse_loss(value, labels), "value": value}


class PlainSgd(Trainer):
    def create_optimizer(self, model=None):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.learning_rate, momentum=0.9)
        return self.optimizer


set_seed(17)
args = TrainingArguments(
    output_dir="out", num_train_epochs=3, per_device_train_batch_size=32, learning_rate=0.02, lr_scheduler_type="constant",
    max_grad_norm=0.0, logging_steps=10, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=17,
)
trainer = PlainSgd(model=Forecast(), args=args, train_dataset=Readings(960, 4, drop_faulty=False))
result = trainer.train()
print("final", result.training_loss)
