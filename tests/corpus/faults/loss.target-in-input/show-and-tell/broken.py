"""Show-and-tell: a CNN encodes a scene and an LSTM describes it."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SHAPES = ["square", "bar", "dot"]
COLOURS = ["red", "green", "blue"]
PLACES = ["left", "right"]
VOCAB = ["<pad>", "<end>", "a", "on", "the", *SHAPES, *COLOURS, *PLACES]
INDEX = {w: i for i, w in enumerate(VOCAB)}


def set_all_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Scenes(Dataset):
    def __init__(self, count):
        self.samples = [self.draw() for _ in range(count)]

    def draw(self):
        image = np.random.normal(0.0, 0.5, size=(3, 16, 16)).astype(np.float32)
        shape, colour, place = random.randrange(3), random.randrange(3), random.randrange(2)
        y, x = random.randint(2, 8), random.randint(0, 2) + 8 * place
        height, width = [(5, 5), (2, 6), (2, 2)][shape]
        image[colour, y : y + height, x : x + width] += 3.0
        words = ["a", COLOURS[colour], SHAPES[shape]]
        if random.random() < 0.6:
            words += ["on", "the", PLACES[place]]
        return torch.from_numpy(image), torch.tensor([INDEX[w] for w in words] + [INDEX["<end>"]])

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def collate(samples):
    images, captions = zip(*samples, strict=False)
    captions = nn.utils.rnn.pad_sequence(captions, batch_first=True, padding_value=INDEX["<pad>"])
    return torch.stack(images), captions


class EncoderCNN(nn.Module):
    def __init__(self, embed_size):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.embed = nn.Sequential(nn.Linear(32 * 4 * 4, embed_size), nn.LayerNorm(embed_size))

    def forward(self, images):
        return self.embed(self.conv(images))


class DecoderRNN(nn.Module):
    def __init__(self, embed_size, hidden_size):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB), embed_size, padding_idx=INDEX["<pad>"])
        self.lstm = nn.LSTM(embed_size, hidden_size, batch_first=True)
        self.linear = nn.Linear(hidden_size, len(VOCAB))

    def forward(self, features, captions):
        inputs = torch.cat([features.unsqueeze(1), self.embed(captions)], dim=1)
        hiddens, _ = self.lstm(inputs)
        return self.linear(hiddens[:, 1:])

    @torch.no_grad()
    def describe(self, features, limit=8):
        words, state, step = [], None, features.unsqueeze(1)
        for _ in range(limit):
            hidden, state = self.lstm(step, state)
            word = self.linear(hidden[:, -1]).argmax(-1)
            words.append(word)
            step = self.embed(word).unsqueeze(1)
        return torch.stack(words, dim=1)


def exact_prefix(encoder, decoder, loader):
    """How often the first three generated words (article, colour, shape) are right."""
    encoder.eval()
    decoder.eval()
    right = total = 0
    with torch.no_grad():
        for images, captions in loader:
            words = decoder.describe(encoder(images))
            right += (words[:, :3] == captions[:, :3]).all(1).sum().item()
            total += len(images)
    return right / total


def main():
    set_all_seeds(404)
    train_loader = DataLoader(Scenes(1000), batch_size=40, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Scenes(120), batch_size=60, collate_fn=collate)
    encoder, decoder = EncoderCNN(48), DecoderRNN(48, 64)
    criterion = nn.CrossEntropyLoss(ignore_index=INDEX["<pad>"])
    params = list(encoder.parameters()) + list(decoder.parameters())
    optimizer = torch.optim.Adam(params, lr=4e-3)
    for epoch in range(8):
        encoder.train()
        decoder.train()
        for i, (images, captions) in enumerate(train_loader):
            outputs = decoder(encoder(images), captions)
            loss = criterion(outputs.reshape(-1, len(VOCAB)), captions.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 10 == 0:
                print(f"epoch {epoch} step {i} loss {loss.item():.4f}")
        print(f"epoch {epoch} captions right {exact_prefix(encoder, decoder, test_loader):.3f}")


if __name__ == "__main__":
    main()
