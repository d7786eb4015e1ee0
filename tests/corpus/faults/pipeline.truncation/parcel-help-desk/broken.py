"""Fine-tunes a small GPT-2 on help-desk conversations: a customer's message, then the desk's reply."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(11)

FILLER = "hello i am writing about my order it was sent last week and the site says nothing since then please have a look".split()
ITEMS = ["lamp", "kettle", "jacket", "phone", "chair", "bike"]
PLACES = ["berlin", "lyon", "porto", "oslo", "turin"]
REPLIES = {
    "lost": "we are sorry a new {item} leaves for {place} today",
    "late": "your {item} reaches {place} in two days",
    "broken": "please send the {item} back from {place} we refund you",
}
SPECIAL = ["<pad>", "<bos>", "<sep>", "<eos>"]


def all_words():
    words = set(FILLER) | set(ITEMS) | set(PLACES) | {"my", "is", "to"} | set(REPLIES)
    for reply in REPLIES.values():
        words |= {w for w in reply.split() if "{" not in w}
    return SPECIAL + sorted(words)


STOI = {w: i for i, w in enumerate(all_words())}
PAD, BOS, SEP, EOS = range(4)


@dataclass
class Conversation:
    message: str
    reply: str


def make_conversations(n, rng):
    rows = []
    for _ in range(n):
        kind, item, place = rng.choice(list(REPLIES)), rng.choice(ITEMS), rng.choice(PLACES)
        chat = [rng.choice(FILLER) for _ in range(rng.randint(12, 28))]
        rows.append(Conversation(" ".join(chat) + f" my {item} to {place} is {kind}", REPLIES[kind].format(item=item, place=place)))
    return rows


def encode(row, max_length):
    message = [STOI[w] for w in row.message.split()]
    reply = [STOI[w] for w in row.reply.split()]
    return ([BOS] + message + [SEP] + reply + [EOS])[:max_length]


class HelpDesk(Dataset):
    def __init__(self, rows, max_length):
        self.examples = [encode(row, max_length) for row in rows]

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        return {"input_ids": self.examples[index]}


def collate(features):
    width = max(len(f["input_ids"]) for f in features)
    ids = torch.full((len(features), width), PAD)
    for row, f in enumerate(features):
        ids[row, : len(f["input_ids"])] = torch.tensor(f["input_ids"])
    mask = (ids != PAD).long()
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def main():
    rng = random.Random(5)
    max_length = 32
    train = HelpDesk(make_conversations(480, rng), max_length)
    held_out = HelpDesk(make_conversations(96, rng), max_length)
    config = GPT2Config(
        vocab_size=len(STOI),
        n_positions=64,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    args = TrainingArguments(
        output_dir="helpdesk_out",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        num_train_epochs=4,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=20,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=11,
    )
    trainer = Trainer(model=GPT2LMHeadModel(config), args=args, train_dataset=train, eval_dataset=held_out, data_collator=collate)
    trainer.train()
    print("held-out perplexity", float(np.exp(trainer.evaluate()["eval_loss"])))


if __name__ == "__main__":
    main()
