import lightning as L
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD = 0
VOCAB = 60
TAGS = ["PAD", "O", "B", "I"]


class ChunkData(Dataset):
    """A chunk opens at a word of the first third of the vocabulary and goes on while words of the second third follow."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(size):
            length = int(torch.randint(4, 22, (1,), generator=generator))
            words = torch.randint(1, VOCAB, (length,), generator=generator)
            tags, inside = [], False
            for word in words.tolist():
                if word < 20:
                    tags.append(2)
                    inside = True
                elif word < 40 and inside:
                    tags.append(3)
                else:
                    tags.append(1)
                    inside = False
            self.items.append((words, torch.tensor(tags)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    words, tags = zip(*items)
    return pad_sequence(words, batch_first=True, padding_value=PAD), pad_sequence(tags, batch_first=True, padding_value=PAD)


class Tagger(L.LightningModule):
    def __init__(self, dim=32, lr=4e-3):
        super().__init__()
        self.lr = lr
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.classify = nn.Linear(2 * dim, len(TAGS))
        self.loss = nn.CrossEntropyLoss(ignore_index=PAD)

    def forward(self, words):
        lengths = (words != PAD).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.size(1))
        return self.classify(self.dropout(states))

    def training_step(self, batch, batch_idx):
        words, tags = batch
        logits = self(words)
        loss = self.loss(logits.flatten(0, 1), tags.flatten())
        self.log("train_loss", loss)
        return loss

    def on_validation_epoch_start(self):
        self.hits, self.tokens = 0, 0

    def validation_step(self, batch, batch_idx):
        words, tags = batch
        predicted = self(words).argmax(-1)
        real = tags != PAD
        self.hits += ((predicted == tags) & real).sum().item()
        self.tokens += real.sum().item()

    def on_validation_epoch_end(self):
        accuracy = self.hits / self.tokens
        self.log("val_accuracy", accuracy)
        print(f"epoch {self.current_epoch} val accuracy {accuracy:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(11)
    train = DataLoader(ChunkData(480, 1), batch_size=24, shuffle=True, collate_fn=collate)
    val = DataLoader(ChunkData(120, 2), batch_size=24, collate_fn=collate)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Tagger(), train, val)


if __name__ == "__main__":
    main()
