"""Remaining-useful-life regression for pumps, Lightning version."""
import logging
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

N_SENSORS = 18


def make_fleet(n: int) -> TensorDataset:
    g = torch.Generator().manual_seed(404)
    health = torch.rand(n, 1, generator=g)
    load = torch.randn(n, 1, generator=g)
    mix = torch.randn(2, N_SENSORS, generator=g)
    x = torch.cat([2 * health - 1, load], 1) @ mix + 0.4 * torch.randn(n, N_SENSORS, generator=g)
    x = (x - x.mean(0)) / x.std(0)
    rul = 2.0 * health - 0.3 * load * health + 0.05 * torch.randn(n, 1, generator=g)
    rul = (rul - rul.mean()) / rul.std()
    return TensorDataset(x, rul)


class RULNet(pl.LightningModule):
    def __init__(self, hidden: int = 64, depth: int = 3, lr: float = 2e-3):
        super().__init__()
        self.save_hyperparameters()
        layers: list[nn.Module] = []
        width = N_SENSORS
        for _ in range(depth):
            layers += [nn.Linear(width, hidden), nn.ReLU()]
            width = hidden
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(hidden, 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for module in self.body:
            if isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)
        nn.init.xavier_uniform_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        return self.head(self.body(x))

    def _loss(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def training_step(self, batch, _):
        loss = self._loss(batch)
        self.log("train_mse", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        self.log("val_mse", self._loss(batch))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch} val_mse {self.trainer.callback_metrics['val_mse']:.4f}")

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs, eta_min=2e-4)
        return [opt], [sched]


def run():
    pl.seed_everything(21)
    train, val = random_split(make_fleet(1200), [1000, 200], generator=torch.Generator().manual_seed(3))
    model = RULNet(hidden=64, depth=3)
    trainer = pl.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, DataLoader(train, batch_size=50, shuffle=True), DataLoader(val, batch_size=200))


if __name__ == "__main__":
    run()
