import torch
import torch.nn as nn

torch.manual_seed(17)
FRAMES, BATCH, MEL, PHONES = 20, 24, 12, 5
prototypes = torch.randn(PHONES, MEL)


def utterances(n):
    phones = torch.randint(0, PHONES, (n, FRAMES // 4)).repeat_interleave(4, dim=1)
    return prototypes[phones] + 0.8 * torch.randn(n, FRAMES, MEL), phones


class FrameTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(MEL, 32)
        self.rnn = nn.GRU(32, 32, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.top = nn.Linear(64, PHONES)

    def forward(self, mel):
        b, t, _ = mel.shape
        h = torch.relu(self.front(mel))
        h = h.reshape(t, b, 32)
        h, _ = self.rnn(h)
        h = h.reshape(b, t, 64)
        return self.top(self.drop(h))


waves, tags = utterances(720)
tagger = FrameTagger()
opt = torch.optim.AdamW(tagger.parameters(), lr=3e-3, weight_decay=0.0)
ce = nn.CrossEntropyLoss()
for epoch in range(3):
    tagger.train()
    for i in torch.randperm(720).split(BATCH):
        opt.zero_grad()
        loss = ce(tagger(waves[i]).flatten(0, 1), tags[i].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
        opt.step()
    print(f"epoch {epoch} ce {loss.item():.3f}")
