"""Token classification with a small BERT and the Hugging Face Trainer; accuracy from compute_metrics."""
import numpy as np
import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed

SEED = 61
VOCAB, MAX_LENGTH, TAGS = 40, 18, 3
PAD = 0
IGNORED = -100


class Notes(torch.utils.data.Dataset):
    """Three kinds of words, dealt out over the vocabulary; a tenth of the tags are noise."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(size):
            length = int(rng.integers(5, MAX_LENGTH + 1))
            words = rng.integers(1, VOCAB, size=length)
            noise = rng.integers(TAGS, size=length)
            self.rows.append((words, np.where(rng.random(length) < 0.1, noise, words % TAGS)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    width = max(len(words) for words, _ in rows)
    ids = torch.full((len(rows), width), PAD)
    labels = torch.full((len(rows), width), IGNORED)
    for i, (words, tags) in enumerate(rows):
        ids[i, : len(words)] = torch.from_numpy(words)
        labels[i, : len(tags)] = torch.from_numpy(tags)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


def compute_metrics(prediction):
    predicted = prediction.predictions.argmax(axis=-1)
    labels = prediction.label_ids
    real = labels != IGNORED
    return {"accuracy": float((predicted[real] == labels[real]).mean())}


def main():
    set_seed(SEED)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_LENGTH,
        type_vocab_size=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
        pad_token_id=PAD,
        num_labels=TAGS,
    )
    args = TrainingArguments(
        output_dir="notes-bert",
        max_steps=90,
        per_device_train_batch_size=24,
        per_device_eval_batch_size=50,
        learning_rate=4e-3,
        lr_scheduler_type="cosine",
        warmup_steps=6,
        logging_steps=15,
        eval_strategy="steps",
        eval_steps=45,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        seed=SEED,
    )
    Trainer(
        model=BertForTokenClassification(config),
        args=args,
        data_collator=collate,
        train_dataset=Notes(1500, seed=1),
        eval_dataset=Notes(200, seed=2),
        compute_metrics=compute_metrics,
    ).train()


if __name__ == "__main__":
    main()
