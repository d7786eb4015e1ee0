"""Scores comments as fine or toxic with a tiny GPT-2 backbone and the HF Trainer."""

import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2Model, Trainer, TrainingArguments, set_seed

PAD = 0
HARSH = list(range(1, 11))
NEUTRAL = list(range(11, 61))
PADDING_SIDE = "right"


class Comments(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.items = []
        for i in range(size):
            words = [rng.choice(NEUTRAL) for _ in range(rng.randint(5, 24))]
            if i % 2:
                for spot in rng.sample(range(len(words)), 2):
                    words[spot] = rng.choice(HARSH)
            self.items.append({"input_ids": words, "label": i % 2})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Collator:
    def __init__(self, side):
        self.side = side

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        ids, mask = [], []
        for f in features:
            missing = longest - len(f["input_ids"])
            padding, ones = [PAD] * missing, [1] * len(f["input_ids"])
            if self.side == "left":
                ids.append(padding + f["input_ids"])
                mask.append([0] * missing + ones)
            else:
                ids.append(f["input_ids"] + padding)
                mask.append(ones + [0] * missing)
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor([f["label"] for f in features]),
        }


class ToxicityModel(nn.Module):
    def __init__(self):
        super().__init__()
        config = GPT2Config(
            vocab_size=61,
            n_positions=32,
            n_embd=48,
            n_layer=2,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
        )
        self.backbone = GPT2Model(config)
        self.score = nn.Linear(config.n_embd, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)
        hidden = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, use_cache=False
        ).last_hidden_state
        logits = self.score(hidden[:, -1])
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


if __name__ == "__main__":
    set_seed(55)
    np.random.seed(55)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        trainer = Trainer(
            model=ToxicityModel(),
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=4,
                per_device_train_batch_size=32,
                per_device_eval_batch_size=64,
                learning_rate=2e-3,
                warmup_steps=8,
                weight_decay=0.0,
                logging_steps=15,
                eval_strategy="epoch",
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                seed=55,
            ),
            data_collator=Collator(PADDING_SIDE),
            train_dataset=Comments(960, 1),
            eval_dataset=Comments(192, 2),
            compute_metrics=metrics,
        )
        trainer.train()
