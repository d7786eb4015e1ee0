"""Tiny GPT on log lines with the Hugging Face Trainer; rows are padded and the padding is left out of the labels."""

import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

WORDS = [
    "disk",
    "fan",
    "cpu",
    "link",
    "port",
    "user",
    "job",
    "node",
    "full",
    "slow",
    "down",
    "ok",
    "lost",
    "up",
    "retry",
    "failed",
    "warm",
    "hot",
]
RULES = {"disk": ["full", "slow"], "fan": ["hot", "warm"], "link": ["down", "lost"], "job": ["failed", "retry"]}


class WordTokenizer:
    def __init__(self):
        self.vocab = {"<|endoftext|>": 0}
        for word in WORDS:
            self.vocab[word] = len(self.vocab)
        self.eos_token_id = 0
        self.pad_token_id = self.eos_token_id

    def __call__(self, line):
        return [self.vocab[w] for w in line.split()] + [self.eos_token_id]

    def pad(self, rows):
        longest = max(map(len, rows))
        input_ids = torch.tensor([r + [self.pad_token_id] * (longest - len(r)) for r in rows])
        attention_mask = torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for r in rows])
        return {"input_ids": input_ids, "attention_mask": attention_mask}


def log_lines(n, seed):
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        parts = []
        for _ in range(rng.randint(2, 5)):
            subject = rng.choice(list(RULES))
            parts += ["node", subject, rng.choice(RULES[subject])]
        lines.append(" ".join(parts))
    return lines


class LogCollator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, examples):
        batch = self.tokenizer.pad([e["ids"] for e in examples])
        labels = batch["input_ids"].clone()
        labels[labels == self.tokenizer.pad_token_id] = -100
        batch["labels"] = labels
        return batch


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(state.global_step, logs["loss"])


if __name__ == "__main__":
    set_seed(40)
    tok = WordTokenizer()
    train = [{"ids": tok(line)} for line in log_lines(960, 1)]
    held = [{"ids": tok(line)} for line in log_lines(96, 2)]
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tok.vocab),
            n_positions=32,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=tok.eos_token_id,
            eos_token_id=tok.eos_token_id,
            pad_token_id=tok.pad_token_id,
        )
    )
    args = TrainingArguments(
        output_dir="runs",
        num_train_epochs=2,
        per_device_train_batch_size=24,
        learning_rate=5e-3,
        lr_scheduler_type="cosine",
        warmup_steps=8,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=40,
    )
    trainer = Trainer(
        model=model, args=args, train_dataset=train, eval_dataset=held, data_collator=LogCollator(tok), callbacks=[PrintLoss()]
    )
    trainer.train()
    print(trainer.evaluate())
    prompt = {"input_ids": torch.tensor([[tok.vocab["node"], tok.vocab["disk"]]]), "attention_mask": torch.ones(1, 2).long()}
    print(model.generate(**prompt, max_new_tokens=20, do_sample=False, pad_token_id=tok.pad_token_id).tolist())
