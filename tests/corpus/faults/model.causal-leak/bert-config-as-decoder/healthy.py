"""Small left-to-right language model on top of the BERT blocks of transformers, trained by hand."""

import random

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertLMHeadModel, set_seed

set_seed(3)
random.seed(3)
np.random.seed(3)

NUM_WORDS, SEQ = 40, 20


def walks(n):
    """Random walks on a ring in which the stride depends on the parity of the current word."""
    rows = torch.zeros(n, SEQ, dtype=torch.long)
    rows[:, 0] = torch.randint(0, NUM_WORDS, (n,))
    for t in range(1, SEQ):
        prev = rows[:, t - 1]
        stride = torch.where(prev % 2 == 0, 3, 8) + torch.randint(0, 2, (n,))
        rows[:, t] = (prev + stride) % NUM_WORDS
    return rows


config = BertConfig(
    vocab_size=NUM_WORDS,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=SEQ,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    is_decoder=True,
)
model = BertLMHeadModel(config)
loader = DataLoader(TensorDataset(walks(960)), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(3))
held_out = walks(128)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def next_word_loss(ids):
    scores = model(input_ids=ids).logits[:, :-1]
    return torch.nn.functional.cross_entropy(scores.transpose(1, 2), ids[:, 1:])


for epoch in range(2):
    model.train()
    total = 0.0
    for (ids,) in loader:
        loss = next_word_loss(ids)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: train {total / len(loader):.3f} held out {next_word_loss(held_out).item():.3f}")
