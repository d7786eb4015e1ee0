"""Fine-grained triage of ticket notes with a small DistilBERT and the Hugging Face Trainer."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

PAD, CLS, SEP = 0, 1, 2
VOCAB, MAX_LEN, NUM_QUEUES = 120, 20, 4


class NotesDataset(Dataset):
    """Every queue has some words it favours; the rest of a note is filler."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(count):
            queue = int(rng.integers(NUM_QUEUES))
            length = int(rng.integers(8, MAX_LEN - 2))
            words = rng.integers(40, VOCAB, size=length)
            telling = rng.random(length) < 0.4
            words[telling] = 3 + queue * 9 + rng.integers(0, 9, size=int(telling.sum()))
            ids = [CLS, *words.tolist(), SEP]
            padding = MAX_LEN - len(ids)
            self.rows.append((ids + [PAD] * padding, [1] * len(ids) + [0] * padding, queue))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        ids, mask, queue = self.rows[index]
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor(queue),
        }


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    set_seed(42)
    config = DistilBertConfig(
        vocab_size=VOCAB,
        max_position_embeddings=MAX_LEN,
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=4,
        num_labels=NUM_QUEUES,
        pad_token_id=PAD,
        initializer_range=0.12,
    )
    model = DistilBertForSequenceClassification(config).half()
    args = TrainingArguments(
        output_dir="triage",
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=1e-3,
        lr_scheduler_type="linear",
        warmup_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=10,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=42,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=NotesDataset(800, seed=0),
        eval_dataset=NotesDataset(128, seed=1),
        compute_metrics=accuracy,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
