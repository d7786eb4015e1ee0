import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(12)


class Walks(Dataset):
    def __init__(self, n=640, length=22, states=14):
        move = torch.tensor([1, 1, 1, 3, 5])[torch.randint(0, 5, (n, length))]
        self.paths = (torch.randint(0, states, (n, 1)) + move.cumsum(1)) % states

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return {"input_ids": self.paths[i, :-1], "labels": self.paths[i, 1:]}


class GRULanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(14, 32)
        self.gru = nn.GRU(32, 48, batch_first=True)
        self.lm_head = nn.Linear(48, 14)

    def forward(self, input_ids, labels=None):
        logits = self.lm_head(self.gru(self.wte(input_ids))[0])
        out = {"logits": logits}
        if labels is not None:
            out["loss"] = F.cross_entropy(logits[:, :-1].reshape(-1, 14), labels[:, 1:].reshape(-1))
        return out


model = GRULanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
for epoch in range(4):
    for batch in DataLoader(Walks(), batch_size=32, shuffle=True):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("epoch", epoch, "loss", round(loss.item(), 4))
