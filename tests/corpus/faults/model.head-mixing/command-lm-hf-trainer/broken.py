"""Pretrain a small decoder on templated command lines with the Hugging Face Trainer."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed
from transformers.modeling_outputs import CausalLMOutput

VERBS = ["copy", "move", "list", "drop", "show"]
NOUNS = ["disk", "file", "user", "host", "port", "node", "mail", "page"]
ALPHABET = sorted(set("".join(VERBS + NOUNS) + "0123456789 =;"))
STOI = {c: i for i, c in enumerate(ALPHABET)}
BLOCK = 40


def command(rng):
    noun = rng.choice(NOUNS)
    number = str(rng.randint(0, 99))
    return f"{rng.choice(VERBS)} {noun} {number} = {noun} {number};"


class CommandDataset(Dataset):
    def __init__(self, num_blocks, seed):
        rng = random.Random(seed)
        self.blocks = []
        for _ in range(num_blocks):
            text = ""
            while len(text) < BLOCK:
                text += command(rng)
            self.blocks.append(torch.tensor([STOI[c] for c in text[:BLOCK]]))

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        return {"input_ids": self.blocks[i], "labels": self.blocks[i].clone()}


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.contiguous().view(B, T, C)
        return self.c_proj(y)


class DecoderLayer(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class CommandLM(nn.Module):
    def __init__(self, n_embd=64, n_head=4, n_layer=2):
        super().__init__()
        self.wte = nn.Embedding(len(ALPHABET), n_embd)
        self.wpe = nn.Embedding(BLOCK, n_embd)
        self.h = nn.ModuleList([DecoderLayer(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, len(ALPHABET), bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.05)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, input_ids, labels=None):
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.size(1), device=input_ids.device))
        for layer in self.h:
            x = layer(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)


def main():
    set_seed(21)
    np.random.seed(21)
    args = TrainingArguments(
        output_dir="command-lm",
        num_train_epochs=3,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=3e-3,
        warmup_steps=10,
        lr_scheduler_type="cosine",
        logging_steps=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=21,
    )
    trainer = Trainer(
        model=CommandLM(),
        args=args,
        train_dataset=CommandDataset(1280, seed=0),
        eval_dataset=CommandDataset(128, seed=1),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
