"""Classifies fixed windows of amino acids into families with the HF Trainer and a custom model."""

import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed
from transformers.modeling_outputs import SequenceClassifierOutput

AMINO = "ACDEFGHIKLMNPQRSTVWY"
WINDOW = 24
FAMILIES = 3
MOTIFS = ["CHHC", "GKST", "DEAD"]


class WindowDataset(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(size):
            family = rng.randrange(FAMILIES)
            residues = [rng.choice(AMINO) for _ in range(WINDOW)]
            start = rng.randrange(WINDOW - 4)
            residues[start : start + 4] = MOTIFS[family]
            self.rows.append(([AMINO.index(r) for r in residues], family))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        ids, family = self.rows[idx]
        return {"input_ids": ids, "labels": family}


def collate(features):
    return {
        "input_ids": torch.tensor([f["input_ids"] for f in features]),
        "labels": torch.tensor([f["labels"] for f in features]),
    }


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm_attn = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads)
        self.norm_ff = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm_attn(x)
        attended, _ = self.attn(h, h, h, need_weights=False)
        x = x + attended
        return x + self.ff(self.norm_ff(x))


class FamilyModel(nn.Module):
    def __init__(self, dim=40, heads=4, layers=2):
        super().__init__()
        self.residues = nn.Embedding(len(AMINO), dim)
        self.positions = nn.Embedding(WINDOW, dim)
        self.local = nn.Conv1d(dim, dim, kernel_size=3, padding=1)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, FAMILIES)
        self.loss_fn = nn.CrossEntropyLoss()

    def forward(self, input_ids, labels=None):
        x = self.residues(input_ids)
        x = x + self.local(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x).mean(dim=1))
        loss = None if labels is None else self.loss_fn(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def main():
    set_seed(77)
    with tempfile.TemporaryDirectory(dir=".") as out:
        args = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=100,
            num_train_epochs=4,
            learning_rate=2e-3,
            weight_decay=0.0,
            lr_scheduler_type="linear",
            warmup_steps=10,
            logging_steps=20,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=77,
        )
        trainer = Trainer(
            model=FamilyModel(),
            args=args,
            train_dataset=WindowDataset(960, 1),
            eval_dataset=WindowDataset(200, 2),
            data_collator=collate,
            compute_metrics=compute_metrics,
        )
        trainer.train()


if __name__ == "__main__":
    main()
