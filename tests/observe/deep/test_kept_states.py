"""Models that keep their hidden state from one call to the next are probed as they were."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F


class Stateful(nn.Module):
    def __init__(self, bidirectional):
        super().__init__()
        self.read = nn.LSTM(1, 8, batch_first=True, bidirectional=bidirectional)
        self.tell = nn.Linear(16 if bidirectional else 8, 1)
        self.hidden = None

    def forward(self, x):
        out, hidden = self.read(x.unsqueeze(-1), self.hidden)
        self.hidden = tuple(h.detach() for h in hidden)
        return self.tell(out).squeeze(-1)


@pytest.mark.parametrize("sees_ahead", [False, True])
def test_a_state_that_goes_on_is_no_look_ahead(sees_ahead):
    torch.manual_seed(0)
    waves = torch.sin(torch.arange(25) * 0.4 + 6 * torch.rand(12, 1))
    model = Stateful(sees_ahead)
    deep = observe(model, lambda: F.mse_loss(model(waves[:, :-1]), waves[:, 1:]), probe=True)
    assert deep.probes["forecast"]["ahead"] == 1
    assert (deep.probes["forecast"]["before"] > 0) == sees_ahead
