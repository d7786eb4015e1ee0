"""Softmax, log-sum-exp and cross-entropy against torch; the gradient against finite differences and
autograd.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.gradcheck import check_gradient
from sawbones.oracles.losses import (
    cross_entropy,
    cross_entropy_gradient,
    log_softmax,
    logsumexp,
    softmax,
)

LOGITS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5),
    elements=st.floats(-1e4, 1e4),
)
REDUCTIONS = ("mean", "sum", "none")


@given(LOGITS)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_softmax_family_equals_torch(x):
    tensor = torch.from_numpy(x)
    np.testing.assert_allclose(
        logsumexp(x), torch.logsumexp(tensor, -1).numpy(), rtol=1e-13, atol=1e-13
    )
    np.testing.assert_allclose(
        log_softmax(x), torch.log_softmax(tensor, -1).numpy(), rtol=1e-12, atol=1e-11
    )
    np.testing.assert_allclose(
        softmax(x), torch.softmax(tensor, -1).numpy(), rtol=1e-13, atol=1e-300
    )


def test_softmax_takes_any_axis_and_infinite_logits():
    x = np.array([[1.0, -np.inf, 2.0], [1e308, -1e308, 1e308]])
    np.testing.assert_allclose(
        softmax(x), torch.softmax(torch.from_numpy(x), -1).numpy(), rtol=1e-13
    )
    np.testing.assert_allclose(softmax(x[:1], axis=0), np.where(np.isinf(x[:1]), np.nan, 1.0))
    assert logsumexp([-np.inf, -np.inf]) == -np.inf
    assert logsumexp([0.0, np.inf]) == np.inf


@st.composite
def cross_entropy_cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_classes, shape = draw(st.integers(2, 6)), draw(st.sampled_from([(7,), (3, 4), (2, 3, 2)]))
    ignore_index = draw(st.sampled_from([-100, 0, 1]))
    targets = rng.integers(0, num_classes, shape)
    targets.flat[0] = (
        num_classes - 1 if num_classes - 1 != ignore_index else 0
    )  # at least one target is kept
    targets.flat[1:3] = ignore_index
    options = {
        "ignore_index": ignore_index,
        "label_smoothing": draw(st.sampled_from([0.0, 0.1, 1.0])),
        "class_weights": draw(st.sampled_from([None, rng.uniform(0.1, 3.0, num_classes)])),
        "reduction": draw(st.sampled_from(REDUCTIONS)),
    }
    return 3.0 * rng.normal(size=(*shape, num_classes)), targets, options


def torch_cross_entropy(logits, targets, options):
    weight = options["class_weights"]
    return torch.nn.functional.cross_entropy(
        logits.movedim(-1, 1) if logits.ndim > 1 else logits,
        torch.from_numpy(targets),
        weight=None if weight is None else torch.from_numpy(weight),
        ignore_index=options["ignore_index"],
        label_smoothing=options["label_smoothing"],
        reduction=options["reduction"],
    )


@given(cross_entropy_cases())
@settings(deadline=None, derandomize=True, max_examples=120)
def test_cross_entropy_and_its_gradient_equal_torch(case):
    logits, targets, options = case
    tensor = torch.from_numpy(logits).requires_grad_()
    loss = torch_cross_entropy(tensor, targets, options)
    np.testing.assert_allclose(
        cross_entropy(logits, targets, **options), loss.detach().numpy(), rtol=1e-12, atol=1e-13
    )
    upstream = np.random.default_rng(0).normal(size=loss.shape)
    loss.backward(torch.from_numpy(np.asarray(upstream)))
    gradient = cross_entropy_gradient(logits, targets, **options, upstream=upstream)
    np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=1e-10, atol=1e-14)


@given(cross_entropy_cases())
@settings(deadline=None, derandomize=True, max_examples=25)
def test_cross_entropy_gradient_agrees_with_finite_differences(case):
    logits, targets, options = case
    upstream = np.random.default_rng(1).normal(size=cross_entropy(logits, targets, **options).shape)
    gradient = cross_entropy_gradient(logits, targets, **options, upstream=upstream)
    report = check_gradient(
        lambda z: cross_entropy(z, targets, **options), [gradient], [logits], upstream=upstream
    )
    assert report.max_relative_error < 1e-6, report


def test_cross_entropy_stays_finite_where_the_naive_formula_overflows():
    assert float(cross_entropy([[1000.0, 0.0]], [1])) == 1000.0
    np.testing.assert_allclose(
        cross_entropy_gradient([[1000.0, 0.0]], [1]), [[1.0, -1.0]], atol=1e-300
    )


def test_cross_entropy_allows_a_forbidden_class_that_is_not_the_target():
    assert float(cross_entropy([[0.0, -np.inf]], [0])) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": [0, 1]}, r"targets has shape \(2,\); expected \(3,\)"),
        (
            {"class_weights": [1.0, 1.0]},
            r"class_weights has shape \(2,\); expected \(4,\) = \(classes,\)",
        ),
        ({"upstream": np.ones(3)}, r"upstream has shape \(3,\); expected \(\)"),
    ],
)
def test_cross_entropy_names_the_shape_it_expected(arguments, message):
    with pytest.raises(ShapeMismatch, match=message):
        cross_entropy_gradient(**{"logits": np.zeros((3, 4)), "targets": [0, 1, 2], **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"targets": [0, 4, 9]},
            r"targets\[1\] is 4; expected 0\.\.3 for 4 classes.*2 of 3 targets",
        ),
        ({"targets": [0.0, 1.0, 2.0]}, r"targets has dtype float64; expected integers"),
        ({"targets": [-100, -100, -100]}, r"the mean has no terms: 0 of 3 targets"),
        ({"label_smoothing": 1.5}, r"label_smoothing is 1.5; expected a number in \[0, 1\]"),
        ({"reduction": "avg"}, r"reduction is 'avg'; expected one of mean, sum, none"),
        (
            {"logits": torch.zeros(3, 4, requires_grad=True)},
            r"logits is a Tensor that NumPy cannot read.*detach",
        ),
        (
            {"logits": np.zeros((3, 4), complex)},
            r"logits has dtype complex128; expected real numbers",
        ),
    ],
)
def test_cross_entropy_names_the_value_it_expected(arguments, message):
    with pytest.raises(ValueOutOfRange, match=message):
        cross_entropy(**{"logits": np.zeros((3, 4)), "targets": [0, 1, 2], **arguments})
