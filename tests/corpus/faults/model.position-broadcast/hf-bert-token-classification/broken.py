"""BERT from scratch (Hugging Face Trainer): label each word by its place inside its sentence and its kind."""
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed

PAD, VOCAB, MAX_LEN = 0, 24, 16
NUM_LABELS = 6


class PlacedWords(Dataset):
    """Three sections per sentence (early, middle, late) and two kinds of word give six labels."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(size):
            n = int(torch.randint(11, MAX_LEN + 1, (1,), generator=g))
            words = torch.randint(1, VOCAB, (n,), generator=g)
            section = (torch.arange(n) // 5).clamp(max=2)
            self.rows.append({"words": words, "tags": 2 * section + words % 2})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def collate(rows):
    size = (len(rows), MAX_LEN)
    input_ids = torch.full(size, PAD)
    labels = torch.full(size, -100)
    for i, row in enumerate(rows):
        n = len(row["words"])
        input_ids[i, :n] = row["words"]
        labels[i, :n] = row["tags"]
    position_ids = torch.arange(size[0])[:, None].expand(size) % MAX_LEN
    return {
        "input_ids": input_ids,
        "attention_mask": (input_ids != PAD).long(),
        "token_type_ids": torch.zeros_like(input_ids),
        "position_ids": position_ids,
        "labels": labels,
    }


def token_accuracy(prediction):
    guesses = prediction.predictions.argmax(-1)
    scored = prediction.label_ids != -100
    return {"accuracy": float((guesses == prediction.label_ids)[scored].mean())}


def main():
    set_seed(40)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=MAX_LEN,
        type_vocab_size=1,
        num_labels=NUM_LABELS,
        pad_token_id=PAD,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    training_args = TrainingArguments(
        output_dir="bert-places",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        max_steps=80,
        learning_rate=2e-3,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=8,
        weight_decay=0.01,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=40,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=40,
    )
    trainer = Trainer(
        model=BertForTokenClassification(config),
        args=training_args,
        train_dataset=PlacedWords(640, seed=1),
        eval_dataset=PlacedWords(64, seed=2),
        data_collator=collate,
        compute_metrics=token_accuracy,
    )
    trainer.train()


if __name__ == "__main__":
    main()
