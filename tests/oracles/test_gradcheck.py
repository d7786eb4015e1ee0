"""The gradient check finds right gradients right, wrong ones wrong, and says when it cannot
tell.
"""

import numpy as np
import pytest
import torch

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.gradcheck import check_gradient, numerical_gradient, relative_errors


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape)


def test_a_right_gradient_passes_over_many_orders_of_magnitude():
    for scale in (1e-6, 1.0, 1e6):
        x = scale * draw(3, 4)
        report = check_gradient(
            lambda v, s=scale: np.sin(v / s).sum(),
            [np.cos(x / scale) / scale],
            [x],
            step=6e-6 * min(scale, 1.0),
        )
        assert report.max_relative_error < 1e-6, (scale, report)


@pytest.mark.parametrize("factor", [1.0 + 1e-5, -1.0, 0.0, 2.0])
def test_one_wrong_entry_among_many_is_found_and_named(factor):
    x, y = draw(3, 4), draw(4, 2)
    gradients = [np.ones((3, 2)) @ y.T, x.T @ np.ones((3, 2))]
    gradients[1][2, 1] *= factor
    report = check_gradient(lambda a, b: (a @ b).sum(), gradients, [x, y])
    assert report.max_relative_error > 5e-6
    assert (report.input_index, report.entry) == (1, (2, 1))
    assert report.numeric == pytest.approx(float((x.T @ np.ones((3, 2)))[2, 1]), rel=1e-8)
    assert not report.kink


def test_numerical_gradient_equals_autograd():
    x, w = draw(5, 3), draw(3, 2)
    tensors = [torch.from_numpy(a).requires_grad_() for a in (x, w)]
    torch.tanh(tensors[0] @ tensors[1]).pow(2).sum().backward()
    for numeric, tensor in zip(
        numerical_gradient(lambda a, b: (np.tanh(a @ b) ** 2).sum(), [x, w]), tensors, strict=True
    ):
        np.testing.assert_allclose(numeric, tensor.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_a_torch_function_can_be_checked_through_numpy():
    x = draw(4)
    layer = torch.nn.Softplus().double()

    def function(values):
        return layer(torch.from_numpy(values)).detach().numpy()

    upstream = draw(4)
    report = check_gradient(function, [upstream / (1.0 + np.exp(-x))], [x], upstream=upstream)
    assert report.max_relative_error < 1e-6


def test_a_kink_is_reported_as_one():
    report = check_gradient(lambda v: np.abs(v).sum(), [[1.0, 1.0]], [[0.0, 2.0]])
    assert report.kink
    assert report.entry == (0,)


def test_a_zero_gradient_passes_only_when_it_is_zero():
    assert check_gradient(lambda v: 3.0, [np.zeros(2)], [np.ones(2)]).max_relative_error == 0.0
    assert check_gradient(lambda v: 3.0, [[0.0, 1e-9]], [np.ones(2)]).max_relative_error == 1.0


def test_a_non_finite_gradient_never_passes():
    for bad in (np.nan, np.inf):
        assert (
            check_gradient(lambda v: v.sum(), [[1.0, bad]], [np.ones(2)]).max_relative_error
            == np.inf
        )
    assert (
        check_gradient(lambda v: np.nan * v.sum(), [np.ones(2)], [np.ones(2)]).max_relative_error
        == np.inf
    )


def test_the_floor_forgives_rounding_in_small_entries_only():
    np.testing.assert_allclose(relative_errors([1.0, 1e-9], [1.0, 2e-9]), [0.0, 1e-6])
    np.testing.assert_allclose(relative_errors([1.0, 1e-9], [1.0, 2e-9], floor=1e-12), [0.0, 0.5])


def test_a_function_that_writes_into_its_argument_does_not_move_the_point():
    x = draw(3)
    kept = x.copy()

    def function(values):
        values *= 2.0
        return (values**2).sum()

    assert check_gradient(function, [8.0 * x], [x]).max_relative_error < 1e-6
    np.testing.assert_array_equal(x, kept)


def test_randomness_and_low_precision_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueOutOfRange, match="for the same inputs; expected a deterministic function"
    ):
        check_gradient(lambda v: v.sum() + rng.normal(), [np.ones(2)], [np.ones(2)])
    with pytest.raises(ValueOutOfRange, match="function returned float32; expected float64"):
        check_gradient(lambda v: v.sum().astype(np.float32), [np.ones(2)], [np.ones(2)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"gradients": [np.ones(3)]},
            r"gradients\[0\] has shape \(3,\); expected \(2,\) = the shape of inputs\[0\]",
        ),
        ({"gradients": []}, r"gradients has 0 arrays; expected 1"),
        (
            {"function": lambda v: v},
            r"function output has shape \(2,\); expected one number, or upstream",
        ),
        ({"upstream": np.ones(2)}, r"upstream has shape \(2,\); expected \(\)"),
        ({"gradients": [[]], "inputs": [[]]}, r"expected at least one number to vary"),
    ],
)
def test_a_wrong_shape_is_named_with_the_expected_one(change, message):
    with pytest.raises(ShapeMismatch, match=message):
        check_gradient(
            **{
                "function": lambda v: v.sum(),
                "gradients": [np.ones(2)],
                "inputs": [np.ones(2)],
                **change,
            }
        )
