import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
PAD, START, STOP, WORDS = 0, 1, 2, 18


def corpus(n, longest=10):
    src, tgt = torch.full((n, longest), PAD), torch.full((n, longest + 2), PAD)
    for i in range(n):
        length = int(torch.randint(2, longest + 1, ()))
        words = torch.randint(3, WORDS, (length,))
        src[i, :length] = words
        tgt[i, 0] = START
        tgt[i, 1 : length + 1] = words.flip(0)
        tgt[i, length + 1] = STOP
    return src, tgt


class Seq2Seq(nn.Module):
    def __init__(self, size=48):
        super().__init__()
        self.src_emb = nn.Embedding(WORDS, size, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(WORDS, size, padding_idx=PAD)
        self.enc = nn.GRU(size, size, batch_first=True)
        self.dec = nn.GRU(size, size, batch_first=True)
        self.out = nn.Linear(size, WORDS)

    def forward(self, src, tgt_in):
        lengths = (src != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.src_emb(src), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.enc(packed)
        y, _ = self.dec(self.tgt_emb(tgt_in), h)
        return self.out(y)


def sequence_loss(logits, gold):
    per_token = F.cross_entropy(logits.reshape(-1, WORDS), gold.reshape(-1), reduction="none")
    return per_token.mean()


src, tgt = corpus(900)
model = Seq2Seq()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
step = 0
for _ in range(3):
    for idx in torch.randperm(900).split(36):
        logits = model(src[idx], tgt[idx, :-1])
        loss = sequence_loss(logits, tgt[idx, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 15 == 0:
            print(step, loss.item())
