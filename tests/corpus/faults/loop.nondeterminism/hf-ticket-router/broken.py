"""Route support tickets to a queue with a small BERT, HF Trainer."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

QUEUES = {
    "billing": "invoice charge refund card payment price".split(),
    "network": "router wifi signal outage cable speed".split(),
    "account": "password login email locked profile name".split(),
}
FILLER = "please hello my the since monday help with again thanks your team it is not working".split()
VOCAB = ["[PAD]", "[CLS]", "[SEP]"] + sorted({w for ws in QUEUES.values() for w in ws} | set(FILLER))
STOI = {w: i for i, w in enumerate(VOCAB)}


class Tickets(Dataset):
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        names = list(QUEUES)
        self.rows = []
        for _ in range(size):
            label = int(rng.integers(len(names)))
            words = list(rng.choice(FILLER, rng.integers(3, 8))) + list(rng.choice(QUEUES[names[label]], 3))
            rng.shuffle(words)
            self.rows.append(([STOI["[CLS]"], *[STOI[w] for w in words], STOI["[SEP]"]], label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": ids, "labels": label}


def collate(rows):
    longest = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for k, r in enumerate(rows):
        n = len(r["input_ids"])
        ids[k, :n] = torch.tensor(r["input_ids"])
        mask[k, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}


def compute_metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    args = TrainingArguments(
        output_dir="router-out",
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        num_train_epochs=4,
        learning_rate=2e-3,
        warmup_steps=8,
        weight_decay=0.01,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        seed=42,
        use_cpu=True,
        disable_tqdm=True,
    )
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        num_labels=len(QUEUES),
        pad_token_id=0,
    )
    model = BertForSequenceClassification(config)
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Tickets(800, 1),
        eval_dataset=Tickets(200, 2),
        data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
