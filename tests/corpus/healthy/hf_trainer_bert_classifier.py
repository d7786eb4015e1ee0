"""Fine-tune-style text classification with transformers.Trainer and a tiny randomly initialised BERT."""
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

LABELS = ["sport", "cooking", "weather"]
TOPIC_WORDS = {0: range(10, 22), 1: range(22, 34), 2: range(34, 46)}
FILLER = range(46, 80)
PAD, CLS, SEP = 0, 1, 2


class TopicDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.examples = []
        for _ in range(n):
            label = int(rng.integers(len(LABELS)))
            words = rng.choice(list(FILLER), size=int(rng.integers(8, 14)))
            topical = rng.choice(list(TOPIC_WORDS[label]), size=4)
            # one word of another topic, so that single words do not settle it
            other = rng.choice(list(TOPIC_WORDS[(label + int(rng.integers(1, 3))) % 3]), size=1)
            body = rng.permutation(np.concatenate([words, topical, other])).tolist()
            self.examples.append({"input_ids": [CLS, *body, SEP], "labels": label})

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]


def pad_batch(examples):
    longest = max(len(e["input_ids"]) for e in examples)
    return {
        "input_ids": torch.tensor([e["input_ids"] + [PAD] * (longest - len(e["input_ids"])) for e in examples]),
        "attention_mask": torch.tensor([[1] * len(e["input_ids"]) + [0] * (longest - len(e["input_ids"])) for e in examples]),
        "labels": torch.tensor([e["labels"] for e in examples]),
    }


def compute_metrics(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


set_seed(13)
config = BertConfig(
    vocab_size=80, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=32, num_labels=len(LABELS), pad_token_id=PAD,
)
model = BertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as scratch:
    training_args = TrainingArguments(
        output_dir=scratch, num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=32,
        learning_rate=2e-3, warmup_steps=10, weight_decay=0.01, max_grad_norm=1.0, logging_steps=25,
        eval_strategy="epoch", save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=13,
    )
    trainer = Trainer(
        model=model, args=training_args, train_dataset=TopicDataset(480, 0), eval_dataset=TopicDataset(128, 1),
        data_collator=pad_batch, compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())
