"""Route support tickets to teams with a small BERT trained from scratch."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

PAD, CLS, SEP = 0, 1, 2
VOCAB = 120
TEAMS = 3


class Tickets(Dataset):
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(size):
            team = int(rng.integers(TEAMS))
            n = int(rng.integers(10, 23))
            common = rng.integers(33, VOCAB, n)
            topical = rng.integers(3 + 10 * team, 13 + 10 * team, n)
            words = np.where(rng.random(n) < 0.35, topical, common)
            self.rows.append((words.tolist(), team))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        words, team = self.rows[index]
        return {"input_ids": [CLS, *words, SEP], "labels": team}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.full((len(rows), width), PAD)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        n = len(r["input_ids"])
        ids[i, :n] = torch.tensor(r["input_ids"])
        mask[i, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}


def compute_metrics(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(11)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        num_labels=TEAMS,
        pad_token_id=PAD,
    )
    model = BertForSequenceClassification(config)
    training_args = TrainingArguments(
        output_dir="ticket-router",
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=2e-8,
        lr_scheduler_type="linear",
        warmup_steps=8,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=11,
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=Tickets(640, 0),
        eval_dataset=Tickets(160, 1),
        data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
