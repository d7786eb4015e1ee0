"""Entity tagging with a tiny DistilBERT and the Hugging Face Trainer."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from transformers import DistilBertConfig, DistilBertForTokenClassification, Trainer, TrainingArguments, set_seed

PAD, CLS, SEP = 0, 1, 2
VOCAB, TAGS = 120, 5


class EntityDataset(torch.utils.data.Dataset):
    """Trigger words open an entity whose type they fix; the following word continues it."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            words, tags = [], []
            while len(words) < rng.randint(8, 22):
                w = rng.randrange(3, VOCAB)
                if w < 23:
                    kind = w % 2
                    words += [w, rng.randrange(23, VOCAB)]
                    tags += [1 + 2 * kind, 2 + 2 * kind]
                else:
                    words.append(w)
                    tags.append(0)
            self.rows.append(([CLS, *words, SEP], [-100, *tags, -100]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i][0], "labels": self.rows[i][1]}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.full((len(rows), width), PAD)
    labels = torch.full((len(rows), width), -100)
    for i, r in enumerate(rows):
        ids[i, : len(r["input_ids"])] = torch.tensor(r["input_ids"])
        labels[i, : len(r["labels"])] = torch.tensor(r["labels"])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


class TaggerTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        loss = F.cross_entropy(outputs.logits.view(-1, TAGS), labels.view(-1), ignore_index=-100, reduction="sum")
        return (loss, outputs) if return_outputs else loss


def token_accuracy(pred):
    guess = pred.predictions.argmax(-1)
    keep = pred.label_ids != -100
    return {"token_acc": float((guess == pred.label_ids)[keep].mean())}


def main():
    set_seed(11)
    config = DistilBertConfig(
        vocab_size=VOCAB,
        dim=48,
        n_layers=2,
        n_heads=4,
        hidden_dim=96,
        max_position_embeddings=32,
        num_labels=TAGS,
        pad_token_id=PAD,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = DistilBertForTokenClassification(config)
    args = TrainingArguments(
        output_dir="tagger-out",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        max_steps=120,
        learning_rate=2e-3,
        warmup_steps=10,
        weight_decay=0.0,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=60,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=11,
    )
    trainer = TaggerTrainer(
        model=model,
        args=args,
        train_dataset=EntityDataset(1200, 1),
        eval_dataset=EntityDataset(150, 2),
        data_collator=collate,
        compute_metrics=token_accuracy,
    )
    trainer.train()
    print({k: round(v, 3) for k, v in trainer.evaluate().items() if k.startswith("eval_") and "per_second" not in k})


if __name__ == "__main__":
    np.random.seed(11)
    main()
