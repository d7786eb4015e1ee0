"""Loss calls in every way of writing them."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

INPUTS = torch.randn(12, 5, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0, 0])


def _step(loss, width=4):
    model = nn.Linear(5, width)
    return observe(model, lambda: loss(model(INPUTS)))


def _only(loss, width=4):
    (found,) = _step(loss, width).losses
    return found


def _by_one_hot(z):
    return -(F.one_hot(LABELS, 4) * z.log_softmax(-1)).sum(-1).mean()


def _by_logsumexp(z):
    return (z.logsumexp(1) - z.gather(1, LABELS[:, None]).squeeze(1)).mean()


def _by_softmax_and_log(z):
    return -torch.log(torch.softmax(z, dim=1) + 1e-9)[torch.arange(12), LABELS].mean()


def _by_gather(z):
    return -z.log_softmax(dim=1).gather(1, LABELS.unsqueeze(1)).squeeze(1).mean()


@pytest.mark.parametrize("loss", [_by_one_hot, _by_logsumexp, _by_softmax_and_log, _by_gather])
def test_cross_entropy_by_hand_has_the_facts_of_the_library_one(loss):
    found = _only(loss)
    facts = found.facts
    assert (
        found.fn == "cross_entropy"
        and facts.by_hand
        and facts.num_classes == 4
        and facts.reduction == "mean"
    )
    assert facts.target_counts == {0: 6, 1: 2, 2: 2, 3: 2} and facts.input_made_by == "linear"
    assert found.site.function == loss.__name__ and not facts.input_is_probability


def _dice(z, right):
    shares, wanted = z.softmax(1), F.one_hot(right, 2).float()
    return 1 - (2 * (shares * wanted).sum() + 1e-6) / (shares.sum() + wanted.sum() + 1e-6)


@pytest.mark.parametrize("size", [1, 6], ids=["unsure", "sure"])
def test_with_two_classes_not_every_function_of_a_softmax_is_a_cross_entropy(size):
    right = INPUTS[:, 0].gt(0).long()
    model = nn.Linear(5, 2)
    with torch.no_grad():
        model.weight.copy_(size * torch.tensor([[-1.0], [1]]) * torch.eye(5)[:1])
    by_hand = -torch.eye(2)[right]
    found = observe(model, lambda: (by_hand * model(INPUTS).log_softmax(1)).sum(1).mean()).losses
    assert [call.fn for call in found] == ["cross_entropy"]
    assert not observe(model, lambda: _dice(model(INPUTS), right)).losses


def test_a_sum_by_hand_is_told_from_a_mean():
    found = _only(lambda z: -z.log_softmax(1).gather(1, LABELS[:, None]).sum())
    assert found.facts.reduction == "sum" and found.facts.value_over_mean == pytest.approx(
        12, rel=1e-3
    )
    assert (
        _only(lambda z: F.cross_entropy(z, LABELS, reduction="sum")).facts.effective_reduction
        == "sum"
    )
    assert (
        _only(
            lambda z: F.cross_entropy(z, LABELS, reduction="none").mean()
        ).facts.effective_reduction
        == "mean"
    )


def test_double_softmax_and_log_softmax_are_seen_with_their_place():
    facts = _only(lambda z: F.cross_entropy(z.softmax(-1), LABELS)).facts
    assert (
        facts.input_is_probability
        and facts.input_made_by == "softmax"
        and facts.input_made_at is not None
    )
    facts = _only(lambda z: F.cross_entropy(F.log_softmax(z, -1), LABELS)).facts
    assert facts.input_is_log_probability and facts.input_made_by == "log_softmax"
    facts = _only(lambda z: F.nll_loss(F.softmax(z, -1), LABELS)).facts
    assert facts.input_is_probability and not facts.input_is_log_probability


def test_sigmoid_before_the_logits_loss():
    goal = (LABELS > 0).float()
    facts = _only(
        lambda z: F.binary_cross_entropy_with_logits(torch.sigmoid(z).squeeze(1), goal), 1
    ).facts
    assert facts.input_in_unit_interval and facts.input_made_by == "sigmoid" and not facts.broadcast
    assert 0.0 <= facts.accuracy <= 1.0


def test_binary_cross_entropy_by_hand():
    goal = (LABELS > 0).float()

    def loss(z):
        p = torch.sigmoid(z).squeeze(1)
        return -(goal * torch.log(p) + (1 - goal) * torch.log(1 - p)).mean()

    found = _only(loss, 1)
    assert (
        found.fn == "binary_cross_entropy"
        and found.facts.reduction == "mean"
        and found.target.shape == (12,)
    )


@pytest.mark.parametrize(
    ("loss", "fn"),
    [
        (lambda z, y: ((z - y) ** 2).mean(), "mse_loss"),
        (lambda z, y: (y - z).square().mean(), "mse_loss"),
        (lambda z, y: (z - y).abs().mean(), "l1_loss"),
        (lambda z, y: F.mse_loss(z, y), "mse_loss"),
        (lambda z, y: nn.SmoothL1Loss()(z, y), "smooth_l1_loss"),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_regression_by_hand_or_not_and_silent_broadcast(loss, fn):
    goal = torch.linspace(-1, 1, 12)
    broad, fine = _only(lambda z: loss(z, goal), 1), _only(lambda z: loss(z.squeeze(1), goal), 1)
    assert broad.fn == fine.fn == fn
    assert broad.facts.broadcast and not fine.facts.broadcast
    assert fine.facts.effective_reduction == "mean" and broad.facts.effective_reduction == "mean"


def test_weights_smoothing_ignored_targets_and_accuracy():
    labels = LABELS.clone()
    labels[:3] = -100
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    facts = _only(
        lambda z: nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1)(z, labels)
    ).facts
    assert facts.weight == [1.0, 2.0, 3.0, 4.0] and facts.smoothing == 0.1
    assert facts.target_ignored_share == pytest.approx(0.25) and len(facts.per_sample) == 12


def test_two_losses_reach_the_root_and_one_does_not():
    def loss(z):
        F.mse_loss(z, torch.zeros_like(z))
        return F.cross_entropy(z, LABELS) + 0.1 * F.l1_loss(z, torch.zeros_like(z))

    reaches = {found.fn: found.facts.reaches_root for found in _step(loss).losses}
    assert reaches == {"mse_loss": False, "cross_entropy": True, "l1_loss": True}


def test_a_scaled_root_is_related_to_the_mean_of_the_elements():
    facts = _only(lambda z: F.cross_entropy(z, LABELS) / 4).facts
    assert facts.effective_reduction == "mean" and facts.root_over_mean == pytest.approx(
        0.25, rel=1e-3
    )
