"""Route customer complaints to departments with a compact DistilBERT-style encoder and transformers.Trainer."""
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

PAD_ID, CLS_ID, SEP_ID = 0, 1, 2
DEPARTMENTS = ("billing", "shipping", "returns", "tech")
VOCAB = 120
MAX_LEN = 24


class ComplaintDataset(Dataset):
    """The department follows from which of two word families comes first in the text."""

    def __init__(self, size: int, seed: int):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(size):
            label = rng.randrange(len(DEPARTMENTS))
            first, second = (10, 30) if label % 2 == 0 else (30, 10)
            family = 10 if label < 2 else 20
            filler = [rng.randrange(60, VOCAB) for _ in range(rng.randint(6, 14))]
            cut = rng.randint(1, len(filler) - 1)
            body = (
                [first + rng.randrange(4)]
                + filler[:cut]
                + [second + rng.randrange(4)]
                + [30 + family + rng.randrange(4)]
                + filler[cut:]
            )
            self.rows.append(([CLS_ID] + body + [SEP_ID], label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        ids, label = self.rows[index]
        return {"input_ids": ids, "label": label}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.full((len(rows), width), PAD_ID, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        n = len(r["input_ids"])
        ids[i, :n] = torch.tensor(r["input_ids"])
        mask[i, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["label"] for r in rows])}


def metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def build_model():
    config = DistilBertConfig(
        vocab_size=VOCAB,
        dim=48,
        hidden_dim=96,
        n_layers=2,
        n_heads=4,
        max_position_embeddings=MAX_LEN,
        num_labels=len(DEPARTMENTS),
        pad_token_id=PAD_ID,
        seq_classif_dropout=0.1,
    )
    return DistilBertForSequenceClassification(config)


def main():
    set_seed(11)
    model = build_model()
    for name, param in model.named_parameters():
        if "classifier" not in name:
            param.requires_grad = False
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=5,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=3e-3,
        warmup_steps=15,
        lr_scheduler_type="cosine",
        logging_steps=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=11,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=ComplaintDataset(800, 1),
        eval_dataset=ComplaintDataset(160, 2),
        data_collator=collate,
        compute_metrics=metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
