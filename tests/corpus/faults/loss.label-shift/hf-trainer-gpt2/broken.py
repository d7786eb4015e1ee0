"""GPT-2 from scratch on a synthetic language with the Hugging Face Trainer."""
import random

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

BOS, EOS, PAD = 0, 1, 2
NUM_WORDS = 29


class ToySentences(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        grammar = random.Random(404)
        follow = {w: grammar.sample(range(3, 3 + NUM_WORDS), 3) for w in range(3, 3 + NUM_WORDS)}
        self.examples = []
        for _ in range(size):
            word = rng.randint(3, 2 + NUM_WORDS)
            ids = [BOS, word]
            for _ in range(rng.randint(12, 18)):
                word = rng.choices(follow[word], weights=[6, 3, 1])[0]
                ids.append(word)
            self.examples.append([*ids, EOS])

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return {"input_ids": self.examples[i]}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    batch = {"input_ids": [], "attention_mask": [], "labels": []}
    for f in features:
        ids = f["input_ids"]
        gap = longest - len(ids)
        batch["input_ids"].append(ids + [PAD] * gap)
        batch["attention_mask"].append([1] * len(ids) + [0] * gap)
        batch["labels"].append(ids[1:] + [-100] * (gap + 1))
    return {key: torch.tensor(value) for key, value in batch.items()}


def main():
    set_seed(17)
    config = GPT2Config(
        vocab_size=3 + NUM_WORDS,
        n_positions=24,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        initializer_range=0.05,
    )
    args = TrainingArguments(
        output_dir="hf-out",
        per_device_train_batch_size=32,
        per_device_eval_batch_size=32,
        num_train_epochs=4,
        learning_rate=2.5e-3,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=8,
        weight_decay=0.01,
        logging_steps=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=17,
        dataloader_num_workers=0,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        train_dataset=ToySentences(640, seed=1),
        eval_dataset=ToySentences(64, seed=2),
        data_collator=collate,
    )
    trainer.train()


if __name__ == "__main__":
    main()
