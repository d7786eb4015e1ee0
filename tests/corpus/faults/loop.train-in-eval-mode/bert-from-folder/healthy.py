"""Fine-tunes a small BERT, kept in a local folder, to tell two kinds of token sequences apart."""
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

random.seed(4)
np.random.seed(4)
torch.manual_seed(4)


def starting_point(folder):
    """A stand-in for a checkpoint that was pretrained elsewhere."""
    config = BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=16, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, num_labels=2,
    )
    BertForSequenceClassification(config).save_pretrained(folder)


def sequences(n, length=12):
    label = torch.randint(0, 2, (n,))
    ids = torch.randint(2, 50, (n, length))
    marked = torch.where(label == 1, 7, 31)
    for row, column in enumerate(torch.randint(1, length, (n, 3))):
        ids[row, column] = marked[row]
    ids[:, 0] = 1
    return TensorDataset(ids, label)


train = DataLoader(sequences(960), batch_size=32, shuffle=True)
with tempfile.TemporaryDirectory() as folder:
    starting_point(folder)
    model = BertForSequenceClassification.from_pretrained(folder)
model.train()

optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
for epoch in range(3):
    running = []
    for ids, label in train:
        out = model(input_ids=ids, labels=label)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        running.append(out.loss.item())
    print(f"epoch {epoch} loss {np.mean(running):.4f}")
