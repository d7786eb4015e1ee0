"""Language model with dilated temporal convolutions (no attention), SGD with Nesterov momentum."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCAB, SEQ = 26, 40


class PhraseStream(Dataset):
    """A long stream of phrases from a small phrase book, cut into windows of SEQ + 1 symbols."""

    def __init__(self, num_windows, seed):
        book = torch.Generator().manual_seed(1001)
        phrases = [torch.randint(0, VOCAB, (int(n),), generator=book) for n in torch.randint(4, 9, (24,), generator=book)]
        g = torch.Generator().manual_seed(seed)
        pieces, have, need = [], 0, num_windows * SEQ + 1
        while have < need:
            piece = phrases[int(torch.randint(0, len(phrases), (1,), generator=g))]
            pieces.append(piece)
            have += len(piece)
        self.stream = torch.cat(pieces)[:need]
        self.num_windows = num_windows

    def __len__(self):
        return self.num_windows

    def __getitem__(self, i):
        window = self.stream[i * SEQ : i * SEQ + SEQ + 1]
        return window[:-1], window[1:]


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of a (B, C, T) tensor."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class TemporalBlock(nn.Module):
    def __init__(self, channels, kernel_size, dilation):
        super().__init__()
        self.span = (kernel_size - 1) * dilation
        self.norm = ChannelNorm(channels)
        self.conv = nn.Conv1d(channels, 2 * channels, kernel_size, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        h = F.pad(self.norm(x), (self.span // 2, self.span - self.span // 2))
        h = F.glu(self.conv(h), dim=1)
        return x + self.mix(h)


class ConvLM(nn.Module):
    def __init__(self, channels=48, kernel_size=3, dilations=(1, 2, 4)):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, channels)
        self.blocks = nn.Sequential(*[TemporalBlock(channels, kernel_size, d) for d in dilations])
        self.norm = ChannelNorm(channels)
        self.head = nn.Conv1d(channels, VOCAB, 1)

    def forward(self, symbols):
        x = self.embed(symbols).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)))  # (B, VOCAB, T)


class Experiment:
    def __init__(self, seed=8, lr=0.08):
        torch.manual_seed(seed)
        self.model = ConvLM()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.train_loader = DataLoader(PhraseStream(800, seed=1), batch_size=32, shuffle=True)
        self.test_loader = DataLoader(PhraseStream(64, seed=2), batch_size=32)

    def train(self, epochs):
        for epoch in range(1, epochs + 1):
            self.model.train()
            losses = []
            for inputs, targets in self.train_loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(inputs), targets)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: first {losses[0]:.3f} last {losses[-1]:.3f} test {self.test():.3f}")

    @torch.no_grad()
    def test(self):
        self.model.eval()
        nll, symbols = 0.0, 0
        for inputs, targets in self.test_loader:
            nll += F.cross_entropy(self.model(inputs), targets, reduction="sum").item()
            symbols += targets.numel()
        return nll / symbols


if __name__ == "__main__":
    Experiment().train(epochs=3)
