"""Codes for positions: which dimension is time, and whether they say anything."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults import read
from sawbones.schema import Ending, Run

EXAMPLES, LENGTH, WIDTH = 6, 9, 8
SERIES = torch.randn(EXAMPLES, LENGTH, 3, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(EXAMPLES) % 4


class Encoder(nn.Module):
    def __init__(self, codes, batch_first=True, per_example=False):
        super().__init__()
        self.register_buffer("codes", codes)
        self.given, self.per_example = nn.Linear(3, WIDTH), per_example
        self.attend = nn.MultiheadAttention(WIDTH, 2, batch_first=batch_first)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x):
        count = len(x) if self.per_example else x.shape[1]
        codes = self.codes[:count, None] if self.per_example else self.codes[:count]
        h = self.given(x) + codes
        return self.head(self.attend(h, h, h)[0].mean(1))


def said(model):
    deep = observe(model, lambda: F.cross_entropy(model(SERIES), LABELS))
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,))
    found = read(run, "model.*").findings
    return {f.fault: f.status for f in found if "position" in f.fault}


def waves(rows=20):
    return torch.sin(torch.arange(rows)[:, None] * torch.arange(1, WIDTH + 1))


def test_codes_along_time_are_right_although_the_layer_takes_the_batch_for_time():
    assert said(Encoder(waves(), batch_first=False)) == {}


def test_codes_along_the_batch_are_seen():
    assert said(Encoder(waves(), per_example=True))["model.position-broadcast"] == "proven"


@pytest.mark.parametrize("number", [0.0, 1.5])
def test_a_fixed_table_of_one_number_says_nothing_of_positions(number):
    assert said(Encoder(torch.full((20, WIDTH), number))) == {"model.position-missing": "proven"}


def test_a_filled_table_is_silent():
    assert said(Encoder(waves())) == {}


def test_a_learned_table_may_begin_at_zero():
    model = Encoder(torch.zeros(20, WIDTH))
    del model.codes
    model.codes = nn.Parameter(torch.zeros(20, WIDTH))
    assert said(model) == {}


def test_true_answers_taken_from_mixture_means_are_no_codes():
    table, rows = torch.randn(50, 3), torch.tensor([4, 9, 20, 31, 40, 44])
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 5 * 3))

    def loss():
        means = model(SERIES[:, 0]).view(EXAMPLES, 5, 3)
        return -(table[rows][:, None] - means).square().sum(-1).neg().logsumexp(1).mean()

    deep = observe(model, loss)
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,))
    assert not read(run, "model.position-*").findings
