"""What an output may depend on: not on later positions, other examples or padding, but on the order
of its input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sawbones.schema import Run
from sawbones.testing.catalogue import free_of
from sawbones.testing.wording import broken, steps_taken

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sawbones.testing.calls import Forward

MOST_PADDED = 4  # examples that are given again without their padding


def assert_causal(
    model: nn.Module | Run,
    batch: Any = None,
    *,
    forward: Forward | None = None,
    source: str | int | None = None,
    tolerance: float = 1e-4,
) -> None:
    """The output at position t does not change when inputs after t do. Inputs and outputs are
    (batch, time, ...).

    `forward(model, batch)` says how the model is called when it is not model(batch), model(*batch)
    or model(**batch); `source` names the tensor of the batch that is changed. The tolerance is
    relative to the spread of the outputs.
    """
    if isinstance(model, Run):
        free_of(model, "model.causal-leak", judged="causality")
        return
    from sawbones.properties.dependence import by_later_positions
    from sawbones.properties.inputs import other_values
    from sawbones.testing.calls import Call, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        base, length = call.steady(), call.given.shape[1]
        _per_position(base, call.given)
        other = other_values(call.given)
        for cut in _cuts(length):
            before, _ = by_later_positions(call.outputs, call.given, other, base, cut)
            moved = before.furthest(2)
            allowed = tolerance * float(base.std())
            if float(moved.max()) > allowed:
                example, position = divmod(int(moved.argmax()), cut)
                most = f"{float(moved.max()):.3g}"
                found = (
                    f"example {example}, position {position} moves by {most} when only inputs "
                    f"from position {cut} on change"
                )
                raise broken(found, f"0 (at most {allowed:.1g})")


def _cuts(length: int) -> list[int]:
    if length < 2:
        raise ValueError(
            f"the input has {length} position: at least 2 are needed to tell the past "
            "from the future"
        )
    return sorted({1, length // 4, length // 2, 3 * length // 4, length - 1} - {0})


def _per_position(output: Tensor, given: Tensor) -> None:
    if output.dim() < 2 or output.shape[:2] != given.shape[:2]:
        raise TypeError(
            f"outputs {tuple(output.shape)} are not (batch, time, ...) like the input "
            f"{tuple(given.shape)}"
        )


def assert_batch_independent(
    model: nn.Module | Run,
    batch: Any = None,
    *,
    forward: Forward | None = None,
    source: str | int | None = None,
    tolerance: float = 1e-4,
) -> None:
    """An example's output does not change when another example of the batch does (in evaluation
    mode). Dimension 0 is the batch.
    """
    if isinstance(model, Run):
        free_of(model, "model.cross-sample-leak")
        return
    from sawbones.properties.dependence import by_one_example
    from sawbones.properties.inputs import other_values
    from sawbones.testing.calls import Call, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        base, size = call.steady(), call.given.shape[0]
        if size < 2 or base.shape[0] != size:
            raise ValueError(
                "at least 2 examples are needed in dimension 0; inputs "
                f"{tuple(call.given.shape)}, outputs {tuple(base.shape)}"
            )
        other = other_values(call.given)
        for example in (0, size - 1):
            others, _ = by_one_example(call.outputs, call.given, other, base, example)
            moved = others.furthest(1)
            worst = int(moved.argmax())
            allowed = tolerance * float(base.std())
            if float(moved.max()) > allowed:
                found = (
                    f"example {worst + (worst >= example)} moves by {float(moved.max()):.3g} when "
                    f"only example {example} changes"
                )
                raise broken(found, f"0 (at most {allowed:.1g})")


def assert_padding_invariant(
    model: nn.Module | Run,
    batch: Any = None,
    pad_id: int = 0,
    *,
    forward: Forward | None = None,
    source: str | int | None = None,
    tolerance: float = 1e-3,
) -> None:
    """An example gives the same output with its padding and without: ids (batch, time), `pad_id`
    fills the ends of rows.

    Each padded example is given again alone, with its padding cut off every tensor of the batch
    that has the shape of the ids.
    """
    if isinstance(model, Run):
        _padding_in(model)
        return
    from sawbones.properties.dependence import by_padding
    from sawbones.properties.inputs import one_example
    from sawbones.testing.calls import Call, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        padded = call.given == pad_id
        rows = (padded.any(1) & ~padded.all(1)).nonzero()[:MOST_PADDED, 0].tolist()
        if not rows:
            raise ValueError(
                f"no row of the input {tuple(call.given.shape)} is padded with {pad_id}"
            )
        base = call.steady()
        per_position = base.shape[:2] == call.given.shape[:2]
        allowed = tolerance * float(base.std())
        for example in rows:
            real = (~padded[example]).nonzero()[:, 0]
            cut_off = one_example(batch, example, call.given, real)
            alone = Call(model, cut_off, forward, call.key).outputs()
            kept = real if per_position else None
            moved = by_padding(alone, base, example, kept).furthest(int(per_position))
            if float(moved.max()) > allowed:
                at = f"example {example}" + (
                    f", position {int(real[moved.argmax()])}" if per_position else ""
                )
                cut = int(padded[example].sum())
                found = (
                    f"{at} moves by {float(moved.max()):.3g} when the {cut} padded positions "
                    "of its row are cut off"
                )
                raise broken(found, f"0 (at most {allowed:.1g})")


def _padding_in(run: Run, tolerance: float = 1e-3) -> None:
    steps_taken(run)
    for deep in run.deep:
        probe = deep.probes.get("padding") or {}
        if probe.get("real", 0.0) > tolerance:
            found = (
                f"an example's answer moves by {probe['real']:.3g} when its {probe['cut']} "
                "padded positions are cut off"
            )
            raise broken(found, 0, deep.step)


def assert_positions_matter(
    model: nn.Module | Run,
    batch: Any = None,
    *,
    forward: Forward | None = None,
    source: str | int | None = None,
    tolerance: float = 1e-4,
) -> None:
    """The order of the input matters: permuting it does more than permute the output. (batch, time,
    ...) in and out.
    """
    if isinstance(model, Run):
        free_of(model, "model.position-missing", "model.position-broadcast")
        return
    import torch

    from sawbones.properties.dependence import by_order
    from sawbones.testing.calls import Call, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        base, length = call.steady(), call.given.shape[1]
        _per_position(base, call.given)
        order = torch.arange(length).flip(0)
        moved = float(by_order(call.outputs, call.given, base, order).furthest(0))
        if moved <= tolerance * float(base.std()):
            raise broken(
                (
                    f"turning the {length} positions round turns the outputs round and moves "
                    f"them by {moved:.3g}"
                ),
                "more",
            )
