"""Loss checks on steps as they are observed: close calls that must stay silent, next to what they
must not miss.
"""

import numpy as np
import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults import read
from sawbones.schema import Ending, Event, Optimizer, Run
from sawbones.stats.failures import first_nonfinite

X = torch.randn(16, 5, generator=torch.Generator().manual_seed(1))
Y = torch.arange(16) % 4
VALUES = torch.randn(16, generator=torch.Generator().manual_seed(2))
SAME = (Y[:, None] // 2 == torch.arange(4)[None] // 2).float()
SGD = Optimizer(0, "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": False}, ({"lr": 0.1},))


def said(loss, width=4, lr=0.1, model=None):
    """fault -> status, from one observed step."""
    model = model or nn.Linear(5, width)
    deep = observe(model, lambda: loss(model))
    steps = {"step": np.zeros(1), "lr": np.array([lr]), "loss": np.ones(1), "grad_norm": np.ones(1)}
    events = (Event(0, "backward", 0, 0, "train", 0.0),)
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        deep=(deep,),
        steps=steps,
        optimizers=(SGD,),
        events=events,
    )
    return {f.fault: f.status for f in read(run, "loss.*").findings}


@pytest.mark.parametrize(
    "loss",
    [
        lambda m: F.cross_entropy(m(X), Y),
        lambda m: F.nll_loss(m(X).log_softmax(-1), Y),
        lambda m: F.cross_entropy(m(X), Y, label_smoothing=0.1),
        lambda m: F.cross_entropy(m(X), F.one_hot(Y, 4).float() * 0.9 + 0.025),
        lambda m: F.kl_div(
            m(X).log_softmax(-1), VALUES.view(4, 4).repeat(4, 1).softmax(-1), reduction="batchmean"
        ),
        lambda m: F.binary_cross_entropy(m(X).sigmoid(), (X[:, :4] > 0).float()),
        lambda m: F.binary_cross_entropy_with_logits(m(X), (X[:, :4] > 0).float()),
        lambda m: F.mse_loss(m(X)[:, 0], VALUES),
        lambda m: -(m(X).log_softmax(-1)[torch.arange(16), Y] * (VALUES - VALUES.mean())).mean(),
        lambda m: F.cross_entropy(m(X), Y, reduction="none").sum() / 16,
        # several positives per row, divided by their number: a supervised contrastive loss
        lambda m: -(m(X).log_softmax(-1) * SAME / SAME.sum(1, keepdim=True)).sum(1).mean(),
    ],
)
def test_sound_losses_are_left_alone(loss):
    assert said(loss) == {}


@pytest.mark.parametrize(
    ("fault", "status", "loss"),
    [
        ("loss.double-softmax", "likely", lambda m: F.cross_entropy(m(X).softmax(-1), Y)),
        (
            "loss.double-softmax",
            "likely",
            lambda m: F.nll_loss(m(X).softmax(-1).log_softmax(-1), Y),
        ),
        (
            "loss.double-softmax",
            "likely",
            lambda m: F.cross_entropy((m(X).softmax(-1) + (-m(X)).softmax(-1)) / 2, Y),
        ),
        (
            "loss.double-softmax",
            "likely",
            lambda m: F.cross_entropy(m(X).log_softmax(-1).exp(), Y),
        ),
        (
            "loss.double-softmax",
            "likely",
            lambda m: F.nll_loss(torch.stack([m(X), -m(X)]).softmax(-1).mean(0).log_softmax(-1), Y),
        ),
        ("loss.double-softmax", "suspected", lambda m: F.cross_entropy(m(X).log_softmax(-1), Y)),
        (
            "loss.double-sigmoid",
            "likely",
            lambda m: F.binary_cross_entropy_with_logits(m(X).sigmoid(), (X[:, :4] > 0).float()),
        ),
        (
            "loss.double-sigmoid",
            "likely",
            lambda m: F.binary_cross_entropy(m(X).sigmoid().sigmoid(), (X[:, :4] > 0).float()),
        ),
        ("loss.wrong-loss", "proven", lambda m: F.nll_loss(m(X).softmax(-1), Y)),
        (
            "loss.wrong-loss",
            "proven",
            lambda m: F.kl_div(m(X).softmax(-1), m(X).detach().softmax(-1), reduction="batchmean"),
        ),
        (
            "loss.wrong-loss",
            "likely",
            lambda m: F.cross_entropy(m(X), torch.tensor([[1.0, 1.0, 0.0, 0.0]]).repeat(16, 1)),
        ),
        ("loss.reduction-sum", "likely", lambda m: F.cross_entropy(m(X), Y, reduction="sum")),
        ("loss.silent-broadcast", "proven", lambda m: ((m(X)[:, :1] - VALUES) ** 2).mean()),
        ("loss.weighting", "likely", lambda m: F.cross_entropy(m(X), Y, label_smoothing=0.9)),
    ],
)
def test_the_fault_is_named_and_nothing_else(fault, status, loss):
    assert said(loss) == {fault: status}


def test_pairs_are_labelled_1_and_minus_1():
    alike = (Y % 2).float()
    assert said(lambda m: F.cosine_embedding_loss(m(X), X[:, :4], alike)) == {
        "loss.wrong-loss": "proven"
    }
    assert said(lambda m: F.cosine_embedding_loss(m(X), X[:, :4], 2 * alike - 1)) == {}


def test_inverse_frequencies_belong_to_their_own_classes():
    labels = torch.repeat_interleave(torch.arange(4), torch.tensor([80, 32, 16, 8]))
    given = torch.randn(len(labels), 5, generator=torch.Generator().manual_seed(3))
    inverse = len(labels) / (4 * torch.bincount(labels).float())
    assert said(lambda m: F.cross_entropy(m(given), labels, weight=inverse)) == {}
    shuffled = inverse[torch.tensor([3, 1, 0, 2])]
    assert said(lambda m: F.cross_entropy(m(given), labels, weight=shuffled)) == {
        "loss.weighting": "likely"
    }
    costs = torch.tensor([1.0, 5.0, 1.0, 5.0])
    assert said(lambda m: F.cross_entropy(m(given), labels, weight=costs)) == {}


def test_a_sum_with_a_rate_that_fits_is_only_suspected():
    assert said(lambda m: F.cross_entropy(m(X), Y, reduction="sum"), lr=0.001) == {
        "loss.reduction-sum": "suspected"
    }


def test_one_output_with_cross_entropy_is_always_zero():
    assert said(lambda m: F.cross_entropy(m(X), torch.zeros(16, dtype=torch.long)), width=1) == {
        "loss.wrong-loss": "proven"
    }


def test_weights_against_and_with_frequency():
    skewed = torch.tensor([0] * 48 + [1] * 16)
    x = X.repeat(4, 1)
    weight = torch.tensor([3.0, 1.0])
    assert said(lambda m: F.cross_entropy(m(x), skewed, weight=weight), width=2) == {
        "loss.weighting": "likely"
    }
    assert said(lambda m: F.cross_entropy(m(x), skewed, weight=weight.flip(0)), width=2) == {}


class Reader(nn.Module):
    def __init__(self, both_ways=False, backwards=False):
        super().__init__()
        self.turned = [1] if backwards else []
        self.emb = nn.Embedding(12, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 8, batch_first=True, bidirectional=both_ways)
        self.out = nn.Linear(16 if both_ways else 8, 12)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids).flip(self.turned))[0].flip(self.turned))


TOKENS = torch.randint(1, 12, (8, 9), generator=torch.Generator().manual_seed(5))


def _scored(cut_in, cut_out, **options):
    def loss(m):
        return F.cross_entropy(
            m(TOKENS[:, cut_in]).flatten(0, 1), TOKENS[:, cut_out].flatten(), **options
        )

    return loss


def test_only_the_next_token_is_the_right_target():
    assert said(_scored(slice(0, 8), slice(1, 9)), model=Reader()) == {}
    for cuts in [
        (slice(0, 8), slice(0, 8)),
        (slice(1, 9), slice(0, 8)),
        (slice(0, 7), slice(2, 9)),
    ]:
        assert said(_scored(*cuts), model=Reader()) == {"loss.label-shift": "proven"}


def test_a_model_that_reads_from_right_to_left_is_asked_for_the_token_before():
    reader = Reader(backwards=True)
    assert said(_scored(slice(1, 9), slice(0, 8)), model=reader) == {}
    for cuts in [(slice(0, 8), slice(0, 8)), (slice(0, 8), slice(1, 9))]:
        assert said(_scored(*cuts), model=reader) == {"loss.label-shift": "proven"}


def test_a_model_that_sees_both_sides_may_be_asked_for_its_input():
    assert said(_scored(slice(0, 8), slice(0, 8)), model=Reader(both_ways=True)) == {
        "loss.label-shift": "suspected"
    }
    hidden = torch.zeros_like(TOKENS, dtype=torch.bool)
    hidden[:, ::4] = True
    labels = TOKENS.masked_fill(~hidden, -100)
    shown = TOKENS.masked_fill(hidden, 11)
    assert (
        said(
            lambda m: F.cross_entropy(m(shown).flatten(0, 1), labels.flatten()),
            model=Reader(both_ways=True),
        )
        == {}
    )


def test_padding_counts_unless_it_is_ignored():
    ragged = TOKENS.clone()
    for row, length in enumerate((9, 5, 7, 4, 9, 6, 3, 8)):
        ragged[row, length:] = 0

    def loss(m, **options):
        return F.cross_entropy(m(ragged[:, :-1]).flatten(0, 1), ragged[:, 1:].flatten(), **options)

    assert said(loss, model=Reader()) == {"loss.pad-not-ignored": "proven"}
    assert said(lambda m: loss(m, ignore_index=0), model=Reader()) == {}
    kept = (ragged[:, 1:].flatten() != 0).float()
    assert (
        said(lambda m: (loss(m, reduction="none") * kept).sum() / kept.sum(), model=Reader()) == {}
    )


@pytest.mark.parametrize(
    ("kept", "told"), [(True, {"loss.silent-broadcast": "proven"}), (False, {})]
)
def test_terms_of_a_prediction_that_broadcast_against_each_other_are_mixed(kept, told):
    def loss(model):
        scores = model(X)
        prediction = scores[:, 0] * 2 + scores[:, 1:].sum(1, keepdim=kept)
        return (prediction - VALUES).square().mean()

    assert said(loss) == told


def bootstrapped(model, keepdim):
    """What is to come is the best score of the next state; the reward came as a column."""
    with torch.no_grad():
        goal = VALUES.unsqueeze(1) + 0.9 * model(X.flip(0)).amax(1, keepdim=keepdim)
    return (goal - model(X).gather(1, Y[:, None])).abs().clamp(max=2.0).mean()


def weighed_by_advantage(model, keepdim):
    chosen = model(X).log_softmax(-1)[torch.arange(16), Y]
    advantage = X.sum(1, keepdim=keepdim) - X.mean()
    ratio = (chosen - chosen.detach()).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


@pytest.mark.parametrize(("loss", "sound"), [(bootstrapped, True), (weighed_by_advantage, False)])
def test_two_numbers_per_example_that_make_every_pair_before_the_loss_are_mixed(loss, sound):
    assert said(lambda m: loss(m, not sound))["loss.silent-broadcast"] == "proven"
    assert "loss.silent-broadcast" not in said(lambda m: loss(m, sound))


def every_good_over_every_bad(model):
    scores = model(X)
    return torch.relu(1 - (scores[:, 0].unsqueeze(1) - scores[:, 1])).mean()


def ranked(model):
    scores, order = model(X)[:, :1], VALUES[:, None] > VALUES
    return (F.softplus(scores.squeeze(1) - scores) * order).mean()


def kernel_of_two_samples(model):
    a, b = model(X), X[:, :4]
    apart = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
    return -(-apart).exp().mean()


def attention_over_nodes(model):
    scores = model(X)
    mixed = (scores[:, :1] + scores[:, 1]).softmax(1) @ scores
    return F.cross_entropy(mixed, Y)


@pytest.mark.parametrize(
    "loss", [every_good_over_every_bad, ranked, kernel_of_two_samples, attention_over_nodes]
)
def test_pairs_that_are_meant_are_left_alone(loss):
    assert "loss.silent-broadcast" not in said(loss)


def test_a_matrix_of_distances_from_sums_of_squares_is_no_mistake():
    apart = torch.cdist(X, X)

    def loss(model):
        z = model(X)
        squares = z.square().sum(1, keepdim=True) + z.square().sum(1) - 2 * z @ z.T
        return (squares - apart).square().mean()

    assert "loss.silent-broadcast" not in said(loss)


@pytest.mark.parametrize(("grad_norm", "told"), [(1.0, False), (np.nan, True)])
def test_an_infinity_counts_where_the_loss_or_a_gradient_of_its_step_is_spoiled(grad_norm, told):
    model = nn.Linear(5, 4)
    deep = observe(model, lambda: torch.log(torch.relu(model(X))).max(1).values.mean())
    steps = {"step": np.zeros(1), "loss": np.ones(1), "grad_norm": np.array([grad_norm])}
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,), steps=steps)
    assert (first_nonfinite(run) is not None) == told


def climbing(sign, maximize):
    """loss.wrong-sign of a run that goes backward from `sign` times a loss that grows."""
    model, deep = nn.Linear(5, 4), []
    for size in (1.0, 4.0):
        with torch.no_grad():
            model.weight.fill_(0.0)
            model.weight[:, 0] = size * torch.arange(4)
        deep.append(observe(model, lambda: sign * F.cross_entropy(model(X), Y)))
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        deep=tuple(deep),
        steps={"step": np.zeros(1), "loss": np.ones(1)},
        optimizers=(Optimizer(0, "Adam", {}, ({"maximize": maximize},)),),
        events=(Event(0, "backward", 0, 0, "train", 0.0),),
    )
    return {f.fault for f in read(run, "loss.wrong-sign").findings}


def test_a_loss_is_climbed_by_a_minus_sign_or_by_the_optimizer_but_not_by_both():
    assert climbing(-1, False) == climbing(1, True) == {"loss.wrong-sign"}
    assert climbing(1, False) == climbing(-1, True) == set()
