"""Intent detection with a custom Trainer loss (transformers), compact BERT trained from scratch."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

INTENTS = ["play", "pause", "weather", "alarm", "call", "navigate"]
PAD, CLS, SEP = 0, 1, 2


class Utterances(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.data = []
        for _ in range(n):
            k = rng.randrange(len(INTENTS))
            words = [rng.randrange(3 + 10 * k, 13 + 10 * k) for _ in range(3)]
            words += [rng.randrange(63, 100) for _ in range(rng.randint(3, 8))]
            rng.shuffle(words)
            self.data.append({"input_ids": [CLS, *words, SEP], "labels": k})

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


def collate(rows):
    longest = max(len(r["input_ids"]) for r in rows)
    ids = [r["input_ids"] + [PAD] * (longest - len(r["input_ids"])) for r in rows]
    ids = torch.tensor(ids)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([r["labels"] for r in rows])}


class IntentTrainer(Trainer):
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.loss_fn(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss


def accuracy(p):
    return {"accuracy": float(np.mean(p.predictions.argmax(-1) == p.label_ids))}


def main():
    set_seed(4)
    config = BertConfig(
        vocab_size=100, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=24, num_labels=len(INTENTS), hidden_dropout_prob=0.1,
    )
    args = TrainingArguments(
        output_dir="intent_out", num_train_epochs=4, per_device_train_batch_size=24, per_device_eval_batch_size=60,
        learning_rate=2e-3, warmup_steps=10, logging_steps=25, eval_strategy="epoch", save_strategy="no",
        report_to="none", disable_tqdm=True, use_cpu=True, seed=4,
    )
    trainer = IntentTrainer(
        model=BertForSequenceClassification(config), args=args, train_dataset=Utterances(720, 1),
        eval_dataset=Utterances(120, 2), data_collator=collate, compute_metrics=accuracy,
    )
    trainer.train()


if __name__ == "__main__":
    main()
