"""How much each target counts, found from the gradient, in every way of writing the same thing."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

INPUTS = torch.randn(12, 5, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0, 0])


def _facts(loss):
    model = nn.Linear(5, 4)
    (found,) = observe(model, lambda: loss(model(INPUTS))).losses
    return found.facts


@pytest.mark.parametrize(
    ("loss", "total"),
    [
        (lambda z: F.cross_entropy(z, LABELS), 1.0),
        (lambda z: F.cross_entropy(z, LABELS, reduction="sum"), 12.0),
        (lambda z: F.cross_entropy(z, LABELS, reduction="none").sum() / 3, 4.0),
        (lambda z: -z.log_softmax(1).gather(1, LABELS[:, None]).sum(), 12.0),
    ],
)
def test_the_weights_of_all_targets_add_up_to_what_the_reduction_makes_of_them(loss, total):
    weights = _facts(loss).weights
    assert (
        weights.sum == pytest.approx(total, rel=1e-4) and weights.fit > 0.999 and weights.used == 12
    )


def _smoothed_by_hand(z, smoothing, weights=None):
    logs = z.log_softmax(1)
    right = -logs.gather(1, LABELS[:, None])[:, 0]
    rows = (1 - smoothing) * right - smoothing * logs.mean(1)
    return rows if weights is None else rows * weights


@pytest.mark.parametrize("smoothing", [0.02, 0.1, 0.3])
def test_labels_smoothed_by_hand_leave_the_weights_as_they_are(smoothing):
    summed = _facts(lambda z: _smoothed_by_hand(3 * z, smoothing).sum()).weights
    assert summed.sum == pytest.approx(12.0, rel=1e-3) and summed.fit > 0.9999
    double = torch.where(LABELS == 1, 2.0, 1.0)
    classes = _facts(lambda z: _smoothed_by_hand(z, smoothing, double).mean()).weights.by_class
    assert classes[1][1] / classes[0][1] == pytest.approx(2.0, rel=1e-3)


def test_ignored_targets_weigh_nothing_however_they_are_ignored():
    kept = (LABELS != 0).float()
    masked = _facts(
        lambda z: (F.cross_entropy(z, LABELS, reduction="none") * kept).sum() / kept.sum()
    ).weights
    by_index = _facts(lambda z: F.cross_entropy(z, LABELS, ignore_index=0)).weights
    for weights in (masked, by_index):
        assert (
            weights.used == 6
            and weights.by_class[0][2] == 0
            and weights.sum == pytest.approx(1.0, rel=1e-4)
        )


def test_class_weights_are_seen_per_class():
    weight = torch.tensor([1.0, 4.0, 1.0, 1.0])
    classes = _facts(lambda z: F.cross_entropy(z, LABELS, weight=weight)).weights.by_class
    assert classes[1][1] / classes[0][1] == pytest.approx(4.0, rel=1e-3)


def _by_exponentials(z):
    e = z.exp()
    return -(e[torch.arange(12), LABELS] / e.sum(1)).log().mean()


def test_a_cross_entropy_that_no_pattern_knows_is_recognised_by_its_gradient():
    facts = _facts(_by_exponentials)
    assert (
        facts.num_classes == 4
        and facts.accuracy >= 0.0
        and facts.weights.sum == pytest.approx(1.0, rel=1e-4)
    )


def test_a_softmax_under_a_hand_written_log_sum_exp_is_what_the_loss_is_given():
    def loss(z):
        p = z.softmax(1)
        return -(p - p.logsumexp(1, keepdim=True))[torch.arange(12), LABELS].mean()

    assert _facts(loss).input_is_probability


class Loop(nn.Module):
    """A decoder that loops over time; `ahead` feeds it the token that it has to predict."""

    def __init__(self, ahead):
        super().__init__()
        self.ahead = ahead
        self.note, self.cell, self.out = nn.Embedding(11, 8), nn.GRUCell(8, 8), nn.Linear(8, 10)

    def forward(self, tokens):
        state, previous, found = torch.zeros(len(tokens), 8), torch.full((len(tokens),), 10), []
        for t in range(tokens.shape[1]):
            state = self.cell(self.note(tokens[:, t] if self.ahead else previous), state)
            previous = tokens[:, t]
            found.append(self.out(state))
        return torch.stack(found, 1)


@pytest.mark.parametrize(("ahead", "shift"), [(True, 0), (False, 1)])
def test_a_loop_over_time_is_a_sequence_too(ahead, shift):
    tokens = torch.randint(0, 10, (16, 6), generator=torch.Generator().manual_seed(3))
    model = Loop(ahead)
    (found,) = observe(
        model, lambda: F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    ).losses
    assert found.facts.copied_at == shift and found.facts.shift[shift]["copies"] == 1.0
    assert found.facts.stepwise.visible is True
