"""Part-of-speech tagging of a template language with a packed BiLSTM."""
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED = 55
torch.manual_seed(SEED)

TAGS = ["DET", "ADJ", "NOUN", "VERB", "ADV", "PREP"]
TAG_ID = {t: i for i, t in enumerate(TAGS)}
WORDS_PER_TAG = 7
SHARED = 10  # words whose tag depends on their neighbours
PAD_WORD = 0
N_WORDS = 1 + WORDS_PER_TAG * len(TAGS) + SHARED

PHRASES = [["DET", "NOUN"], ["DET", "ADJ", "NOUN"], ["VERB", "ADV"], ["VERB"], ["PREP", "DET", "NOUN"], ["ADV", "VERB"]]


class TaggedSentences(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            tags = []
            for _ in range(rng.integers(4, 8)):
                tags += PHRASES[rng.integers(len(PHRASES))]
            words = []
            for tag in tags:
                if tag in ("NOUN", "VERB") and rng.random() < 0.5:
                    words.append(1 + WORDS_PER_TAG * len(TAGS) + rng.integers(SHARED))
                else:
                    words.append(1 + WORDS_PER_TAG * TAG_ID[tag] + rng.integers(WORDS_PER_TAG))
            self.items.append((torch.tensor(words), torch.tensor([TAG_ID[t] for t in tags])))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


IGNORE = -100


def collate(items):
    words, tags = zip(*items, strict=True)
    lengths = torch.tensor([len(w) for w in words])
    word_batch = pad_sequence(words, batch_first=True, padding_value=PAD_WORD)
    tag_batch = pad_sequence(tags, batch_first=True)
    return word_batch, tag_batch, lengths


class BiLSTMTagger(nn.Module):
    def __init__(self, emb_dim=32, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, emb_dim, padding_idx=PAD_WORD)
        self.lstm = nn.LSTM(emb_dim, hidden, bidirectional=True, batch_first=True)
        self.classifier = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = self.lstm(packed)
        hidden, _ = pad_packed_sequence(hidden, batch_first=True)
        return self.classifier(hidden)


def accuracy(model, loader):
    model.eval()
    good = seen = 0
    with torch.no_grad():
        for words, tags, lengths in loader:
            real = words.ne(PAD_WORD)
            predicted = model(words, lengths).argmax(dim=2)
            good += predicted.eq(tags)[real].sum().item()
            seen += real.sum().item()
    return good / seen


train_loader = DataLoader(TaggedSentences(640, seed=1), batch_size=32, shuffle=True, collate_fn=collate)
test_loader = DataLoader(TaggedSentences(100, seed=2), batch_size=50, collate_fn=collate)

model = BiLSTMTagger()
loss_function = nn.CrossEntropyLoss(ignore_index=IGNORE)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(3):
    model.train()
    for batch_no, (words, tags, lengths) in enumerate(train_loader):
        model.zero_grad()
        scores = model(words, lengths)
        loss = loss_function(scores.permute(0, 2, 1), tags)
        loss.backward()
        optimizer.step()
        if batch_no % 10 == 0:
            print(f"{epoch}.{batch_no:02d} loss={loss.item():.4f}")
    print(f"epoch {epoch} test accuracy {accuracy(model, test_loader):.4f}")
