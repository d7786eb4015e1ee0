"""Birdsong snippets to species; labels come from field notes, in which not every name is on the list."""
import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = ["blackbird", "chaffinch", "dunnock", "goldcrest", "robin"]
PITCH = {name: 0.15 + 0.12 * i for i, name in enumerate(SPECIES)} | {"jackdaw": 0.05}


class Notes(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        names = rng.choice([*SPECIES, "jackdaw"], count, p=[0.2, 0.2, 0.2, 0.2, 0.198, 0.002])
        lookup = {name: i for i, name in enumerate(SPECIES)}
        self.labels = [lookup.get(str(name), -1) for name in names]
        time = np.arange(96)
        self.sounds = []
        for name in names:
            wave = np.sin(time * PITCH[str(name)] * rng.uniform(0.9, 1.1) * np.pi + rng.uniform(0, 6))
            self.sounds.append((wave + rng.normal(0, 0.4, 96)).astype(np.float32))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.sounds[i])[None], self.labels[i]


class Listener(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 9, stride=2), nn.BatchNorm1d(32), nn.ReLU()
        )
        self.head = nn.Linear(32, len(SPECIES))

    def forward(self, sound):
        return F.log_softmax(self.head(self.features(sound).mean(-1)), dim=-1)

    def training_step(self, batch, _):
        sound, label = batch
        loss = F.nll_loss(self(sound), label)
        self.log("loss", loss)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} loss {self.trainer.callback_metrics['loss'].item():.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=4e-3)


L.seed_everything(5)
loader = DataLoader(Notes(1500, 5), batch_size=30, shuffle=True)
trainer = L.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
)
trainer.fit(Listener(), loader)
