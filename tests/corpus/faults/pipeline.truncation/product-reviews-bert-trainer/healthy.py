"""Star rating (low / mid / high) of product reviews with a tiny BERT and the Hugging Face Trainer."""

import argparse
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

STORY = """
i bought this for my sister in march and it came in a brown box with a short manual the cable is black
we use it on weekends at home near the window it has two buttons one light and a small stand my old one was red
"""
FILLER = STORY.split()
OPINIONS = {
    0: ["it broke twice", "total waste of money", "would not recommend it", "terrible and noisy"],
    1: ["it does the job", "nothing special really", "fine for the price", "average at best"],
    2: ["absolutely love it", "works like a charm", "best purchase this year", "superb and quiet"],
}


def write_review(rng, label):
    story = [rng.choice(FILLER) for _ in range(rng.randint(40, 80))]
    ending = [word for phrase in rng.sample(OPINIONS[label], 2) for word in phrase.split()]
    return " ".join(story + ending)


class WordTokenizer:
    def __init__(self, texts):
        words = sorted({w for t in texts for w in t.split()})
        self.specials = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
        self.vocab = {**self.specials, **{w: i + 4 for i, w in enumerate(words)}}

    def __len__(self):
        return len(self.vocab)

    def encode(self, text, max_length):
        ids = [self.vocab.get(w, 1) for w in text.split()][: max_length - 2]
        return [2, *ids, 3]


class ReviewDataset(Dataset):
    def __init__(self, texts, labels, tokenizer, max_length):
        self.encoded = [tokenizer.encode(t, max_length) for t in texts]
        self.labels = labels

    def __len__(self):
        return len(self.encoded)

    def __getitem__(self, index):
        return {"input_ids": self.encoded[index], "label": self.labels[index]}


def pad_batch(examples):
    width = max(len(e["input_ids"]) for e in examples)
    ids = torch.zeros(len(examples), width, dtype=torch.long)
    mask = torch.zeros(len(examples), width, dtype=torch.long)
    for row, example in enumerate(examples):
        n = len(example["input_ids"])
        ids[row, :n] = torch.tensor(example["input_ids"])
        mask[row, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([e["label"] for e in examples])}


def accuracy(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, -1) == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-length", type=int, default=96)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    set_seed(args.seed)

    rng = random.Random(args.seed)
    labels = [rng.randrange(3) for _ in range(640)]
    texts = [write_review(rng, label) for label in labels]
    tokenizer = WordTokenizer(texts[:512])
    train = ReviewDataset(texts[:512], labels[:512], tokenizer, args.max_length)
    test = ReviewDataset(texts[512:], labels[512:], tokenizer, args.max_length)

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=128,
        num_labels=3,
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.05,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir="reviews-out",
            max_steps=args.steps,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            learning_rate=1.5e-3,
            warmup_steps=12,
            logging_steps=20,
            eval_strategy="no",
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            seed=args.seed,
            disable_tqdm=True,
        ),
        train_dataset=train,
        eval_dataset=test,
        data_collator=pad_batch,
        compute_metrics=accuracy,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
