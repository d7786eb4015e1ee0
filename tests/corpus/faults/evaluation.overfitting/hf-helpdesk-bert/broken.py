"""Route helpdesk tickets to a queue with a small BERT trained from scratch through the HF Trainer."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(13)

VOCAB, QUEUES, LENGTH = 160, 4, 16
PAD, CLS = 0, 1
TICKETS = 120


def write_ticket(rng):
    """A ticket mixes words of its queue with words that every queue uses; one in eight was filed in the wrong queue."""
    queue = rng.randrange(QUEUES)
    words = []
    for _ in range(rng.randint(8, LENGTH - 1)):
        if rng.random() < 0.3:
            words.append(2 + queue * 15 + rng.randrange(15))
        else:
            words.append(62 + rng.randrange(VOCAB - 62))
    label = queue if rng.random() < 0.88 else rng.randrange(QUEUES)
    return words, label


class Tickets(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.rows = [write_ticket(rng) for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        words, label = self.rows[index]
        ids = [CLS] + words
        missing = LENGTH - len(ids)
        return {
            "input_ids": torch.tensor(ids + [PAD] * missing),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * missing),
            "labels": torch.tensor(label),
        }


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        num_labels=QUEUES,
        pad_token_id=PAD,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    model = BertForSequenceClassification(config)
    train_set, eval_set = Tickets(TICKETS, seed=1), Tickets(200, seed=2)
    arguments = TrainingArguments(
        output_dir="helpdesk",
        max_steps=300,
        per_device_train_batch_size=24,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=20,
        weight_decay=0.0,
        eval_strategy="steps",
        eval_steps=30,
        logging_steps=30,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=13,
        dataloader_num_workers=0,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=train_set, eval_dataset=eval_set, compute_metrics=accuracy
    )
    trainer.train()
    final = trainer.evaluate()
    print("final", {k: round(v, 3) for k, v in final.items() if k in ("eval_loss", "eval_accuracy")})
    print("chance", round(1 / QUEUES, 3), "best possible", round(float(np.mean([0.88 + 0.12 / QUEUES])), 3))


if __name__ == "__main__":
    main()
