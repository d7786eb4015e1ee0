"""Ticket triage with a small BERT encoder, data parallel over two local CPU processes."""

import random
import socket

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertModel

WORLD_SIZE = 2
PAD, CLS = 0, 1
VOCAB = 60
NUM_QUEUES = 4


class Tickets(Dataset):
    """Each queue favours a few words of its own; texts have different lengths."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            queue = rng.randrange(NUM_QUEUES)
            own = range(2 + queue * 8, 10 + queue * 8)
            length = rng.randint(6, 14)
            words = [rng.choice(own) if rng.random() < 0.5 else rng.randrange(34, VOCAB) for _ in range(length)]
            self.rows.append(([CLS, *words], queue))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    input_ids = torch.tensor([ids + [PAD] * (longest - len(ids)) for ids, _ in rows])
    labels = torch.tensor([label for _, label in rows])
    return input_ids, (input_ids != PAD).long(), labels


class TicketClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=32,
            pad_token_id=PAD,
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(config.hidden_size, NUM_QUEUES)

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return self.classifier(self.dropout(mean))


def worker(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD_SIZE)
    torch.set_num_threads(1)
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    data = Tickets(512, seed=9)
    sampler = DistributedSampler(data, num_replicas=WORLD_SIZE, rank=rank, seed=5)
    loader = DataLoader(data, batch_size=16, sampler=sampler, collate_fn=collate, drop_last=True)
    model = DDP(TicketClassifier())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    loss_fn = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(5):
        sampler.set_epoch(epoch)
        running = 0.0
        for input_ids, attention_mask, labels in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(input_ids, attention_mask), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            running += loss.item()
        if rank == 0:
            print(f"epoch {epoch} loss {running / len(loader):.4f}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(worker, args=(free_port(),), nprocs=WORLD_SIZE, join=True)
