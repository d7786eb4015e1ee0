"""Multi-label topic tagging with the Hugging Face Trainer and a small BERT from scratch."""
import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

NUM_TOPICS = 5
WORDS_PER_TOPIC = 6
COMMON = 20
LENGTH = 14


class TopicDataset(Dataset):
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(size):
            topics = rng.random(NUM_TOPICS) < 0.35
            words = []
            for topic in np.flatnonzero(topics):
                words += list(3 + topic * WORDS_PER_TOPIC + rng.integers(0, WORDS_PER_TOPIC, 2))
            fill = LENGTH - 2 - len(words)
            words += list(3 + NUM_TOPICS * WORDS_PER_TOPIC + rng.integers(0, COMMON, fill))
            rng.shuffle(words)
            ids = [1] + [int(w) for w in words] + [2]
            self.rows.append((torch.tensor(ids), torch.tensor(topics.astype(np.float32))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, labels = self.rows[i]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    predictions = (1 / (1 + np.exp(-logits)) > 0.5).astype(int)
    return {
        "micro_f1": f1_score(labels, predictions, average="micro", zero_division=0),
        "subset_accuracy": float((predictions == labels).all(axis=1).mean()),
    }


def main():
    set_seed(21)
    config = BertConfig(
        vocab_size=3 + NUM_TOPICS * WORDS_PER_TOPIC + COMMON,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        num_labels=NUM_TOPICS,
        problem_type="multi_label_classification",
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=2e-3,
        warmup_steps=10,
        weight_decay=0.0,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=15,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=21,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=TopicDataset(800, 1),
        eval_dataset=TopicDataset(160, 2),
        compute_metrics=compute_metrics,
    )
    trainer.train()


if __name__ == "__main__":
    main()
