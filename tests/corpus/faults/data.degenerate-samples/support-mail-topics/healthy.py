import random
import re
from collections import Counter

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

random.seed(17)
torch.manual_seed(17)

# Support mails as they arrive: signature lines, quoted replies, attachment notices.
TOPICS = {
    "billing": ["invoice", "refund", "charge", "card", "payment", "receipt", "double", "amount"],
    "login": ["password", "reset", "account", "locked", "code", "sign", "email", "expired"],
    "shipping": ["parcel", "delivery", "late", "courier", "address", "tracking", "lost", "box"],
}
FILLER = ["hello", "please", "the", "my", "a", "is", "was", "i", "it", "can", "you", "help", "today", "since", "still"]
NAMES = list(TOPICS)


def write_mail(label):
    words = [random.choice(TOPICS[NAMES[label]] if random.random() < 0.35 else FILLER) for _ in range(random.randint(6, 18))]
    kind = random.random()
    body = " ".join(words)
    if kind < 0.22:
        return "> " + body + "\n-- \n+49 170 5551234"
    if kind < 0.6:
        return body + "\n> " + random.choice(["thanks!", "we will look into it."]) + "\n-- \n+49 170 5551234"
    return body


def clean(mail):
    lines = mail.split("\n--")[0].splitlines()
    lines = [line for line in lines if not line.startswith(">")]
    return re.findall(r"[a-z]+", " ".join(lines).lower())


raw = [(write_mail(label), label) for label in (random.randrange(3) for _ in range(1500))]
mails = [(clean(text), label) for text, label in raw]
mails = [(words, label) for words, label in mails if words]
train, test = mails[:1000], mails[1000:]

counts = Counter(word for words, _ in train for word in words)
vocab = {"<pad>": 0, "<unk>": 1}
for word, _ in counts.most_common():
    vocab[word] = len(vocab)


def encode(words):
    return torch.tensor([vocab.get(w, 1) for w in words] or [0])


def collate(rows):
    ids = [encode(words) for words, _ in rows]
    lengths = torch.tensor([len(i) for i in ids])
    return pad_sequence(ids, batch_first=True), lengths, torch.tensor([label for _, label in rows])


class TopicGRU(nn.Module):
    def __init__(self, vocab_size, emb=24, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, emb, padding_idx=0)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(2 * hidden, len(NAMES))

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        _, state = self.gru(packed)
        return self.out(self.drop(torch.cat([state[0], state[1]], dim=-1)))


model = TopicGRU(len(vocab))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)

train_loader = torch.utils.data.DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
test_loader = torch.utils.data.DataLoader(test, batch_size=64, collate_fn=collate)

for epoch in range(4):
    model.train()
    seen, loss_sum = 0, 0.0
    for ids, lengths, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(ids, lengths), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss_sum += loss.item() * len(labels)
        seen += len(labels)
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for ids, lengths, labels in test_loader:
            correct += (model(ids, lengths).argmax(-1) == labels).sum().item()
            total += len(labels)
    print(f"epoch {epoch} loss {loss_sum / seen:.3f} test acc {correct / total:.3f}")
