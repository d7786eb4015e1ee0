from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

ACCUMULATE = 3


class Melodies(Dataset):
    """Walks over a scale; a melody ends on the note it began with or it does not."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        moves = torch.randint(-2, 3, (count, 15), generator=g)
        start = torch.randint(0, 12, (count, 1), generator=g)
        self.notes = torch.cat([start, start + moves.cumsum(1)], 1) % 12
        self.major = (((self.notes == 4) | (self.notes == 0) | (self.notes == 7)).sum(1) > 3).float()

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        return self.notes[i], self.major[i]


class MelodyNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.note = nn.Embedding(12, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, notes):
        states, _ = self.rnn(self.note(notes))
        return self.out(states.mean(1)).squeeze(-1)


class DistributedTrainer:
    def __init__(self):
        dist.init_process_group("gloo")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(100)
        data = Melodies(960, 1)
        self.sampler = DistributedSampler(data, self.world, self.rank, shuffle=True, drop_last=True)
        self.loader = DataLoader(data, batch_size=16, sampler=self.sampler, drop_last=True)
        self.model = DDP(MelodyNet())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)

    def train(self, epochs):
        for epoch in range(epochs):
            self.sampler.set_epoch(epoch)
            self.model.train()
            total = torch.zeros(1)
            for index, (notes, major) in enumerate(self.loader):
                micro = index % ACCUMULATE
                with self.model.no_sync() if micro < ACCUMULATE else nullcontext():
                    loss = F.binary_cross_entropy_with_logits(self.model(notes), major)
                    (loss / ACCUMULATE).backward()
                total += loss.detach()
                if micro == ACCUMULATE - 1:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            dist.all_reduce(total)
            if self.rank == 0:
                print(f"epoch {epoch}: {total.item() / len(self.loader) / self.world:.4f}", flush=True)

    def close(self):
        dist.destroy_process_group()


if __name__ == "__main__":
    trainer = DistributedTrainer()
    trainer.train(6)
    trainer.close()
