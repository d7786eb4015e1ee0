"""Train a tiny GPT-2 on recipe steps of uneven length with the Hugging Face Trainer."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

WORDS = (
    "<pad> <bos> <eos> chop slice dice boil fry bake add stir the onion carrot potato leek in oil butter water "
    "for five ten twenty minutes until soft golden crisp then serve with salt pepper parsley"
).split()
ID = {word: i for i, word in enumerate(WORDS)}
PAD, BOS, EOS = 0, 1, 2
COOKED = {"boil": ("water", "soft"), "fry": ("oil", "golden"), "bake": ("butter", "crisp")}


def write_recipe(rng: random.Random) -> list[int]:
    words = ["<bos>"]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        vegetable = rng.choice(["onion", "carrot", "potato", "leek"])
        how = rng.choice(sorted(COOKED))
        medium, result = COOKED[how]
        words += [rng.choice(["chop", "slice", "dice"]), "the", vegetable, "then", how, "the", vegetable, "in", medium]
        words += ["for", rng.choice(["five", "ten", "twenty"]), "minutes", "until", result]
    words += ["serve", "with", rng.choice(["salt", "pepper", "parsley"]), "<eos>"]
    return [ID[word] for word in words]


class RecipeDataset(Dataset):
    def __init__(self, count: int, seed: int):
        rng = random.Random(seed)
        self.recipes = [write_recipe(rng) for _ in range(count)]

    def __len__(self):
        return len(self.recipes)

    def __getitem__(self, index):
        return {"input_ids": self.recipes[index]}


class RecipeCollator:
    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        input_ids = torch.full((len(features), longest), PAD)
        attention_mask = torch.zeros(len(features), longest, dtype=torch.long)
        for row, feature in enumerate(features):
            length = len(feature["input_ids"])
            input_ids[row, :length] = torch.tensor(feature["input_ids"])
            attention_mask[row, :length] = 1
        labels = input_ids.clone()
        return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def main():
    set_seed(13)
    np.random.seed(13)
    config = GPT2Config(
        vocab_size=len(WORDS),
        n_positions=80,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    args = TrainingArguments(
        output_dir="recipes",
        max_steps=80,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=4e-3,
        warmup_steps=8,
        lr_scheduler_type="cosine",
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=40,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=13,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        train_dataset=RecipeDataset(640, 1),
        eval_dataset=RecipeDataset(64, 2),
        data_collator=RecipeCollator(),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
