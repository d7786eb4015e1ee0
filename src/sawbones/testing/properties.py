"""What an output may depend on: not on later positions, other examples or padding, but on the order
of its input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sawbones.schema import Influence, Run
from sawbones.stats.sequences import predictions
from sawbones.testing.wording import broken, steps_taken

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sawbones.testing.calls import Forward

VISIBLE = 1e-4
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
        _causal_in(model)
        return
    from sawbones.testing.calls import Call, at, changed, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        base, length = call.steady(), call.given.shape[1]
        _per_position(base, call.given)
        for cut in _cuts(length):
            other = call.outputs(
                changed(call.given, at(call.given, (slice(None), slice(cut, None))))
            )
            moved = (other - base)[:, :cut].abs().flatten(2).amax(-1)
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


def _causal_in(run: Run) -> None:
    steps_taken(run)
    looked = 0
    ahead = predictions(run)
    for deep in run.deep:
        mine = [p.influence for p in ahead if p.deep is deep]
        for item in mine or ([] if ahead else deep.influence):
            if item is None or item.future is None or not item.dependent or item.mixes:
                continue
            looked += 1
            if item.future > VISIBLE:
                furthest = max(
                    (k for k, share in item.by_offset.items() if share > VISIBLE), default=1
                )
                at = (
                    f"example {item.outputs[0][0]}, position {item.outputs[0][1]}: "
                    if item.outputs
                    else ""
                )
                found = (
                    f"{at}{item.future:.3g} of an output's dependence is on later positions, "
                    f"up to {furthest} ahead"
                )
                raise broken(found, 0, deep.step, item.site)
        for name in ("causality", "forecast"):
            probe = deep.probes.get(name) or {}
            if "before" in probe and (name == "forecast" or ahead):
                looked += 1
                if probe["before"] > 10 * VISIBLE:
                    found = (
                        f"outputs before position {probe['cut']} move by "
                        f"{probe['before']:.3g} when only later inputs change"
                    )
                    raise broken(found, 0, deep.step)
    if not looked:
        raise broken(
            f"nothing to read causality from in {len(run.deep)} traced steps of {run.script}",
            "outputs per position",
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
        _independent_in(model)
        return
    from sawbones.testing.calls import Call, at, changed, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        base, size = call.steady(), call.given.shape[0]
        if size < 2 or base.shape[0] != size:
            raise ValueError(
                "at least 2 examples are needed in dimension 0; inputs "
                f"{tuple(call.given.shape)}, outputs {tuple(base.shape)}"
            )
        for example in (0, size - 1):
            other = call.outputs(changed(call.given, at(call.given, example)))
            moved = (other - base).abs().flatten(1).amax(-1)
            moved[example] = 0.0
            allowed = tolerance * float(base.std())
            if float(moved.max()) > allowed:
                found = (
                    f"example {int(moved.argmax())} moves by {float(moved.max()):.3g} when "
                    f"only example {example} changes"
                )
                raise broken(found, f"0 (at most {allowed:.1g})")


def _independent_in(run: Run) -> None:
    steps_taken(run)
    for deep in run.deep:
        probe = deep.probes.get("batch") or {}
        for item in deep.influence:
            share = item.other_examples or 0.0
            if (
                share > 10 * VISIBLE
                and not item.mixes
                and item.dependent >= 2
                and not probe.get("others", 1.0) < 1e-6
            ):
                raise broken(
                    f"{share:.3g} of an example's dependence is on {_others(item)}",
                    0,
                    deep.step,
                    item.site,
                )
        if probe.get("others", 0.0) > 10 * VISIBLE:
            found = (
                f"the other examples move by {probe['others']:.3g} when only the last one changes"
            )
            raise broken(found, 0, deep.step)


def _others(item: Influence) -> str:
    return f"the other {item.source_shape[item.batch_dim] - 1} examples"


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
    from sawbones.testing.calls import Call, evaluating, one_example

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
            alone = Call(
                model, one_example(batch, example, call.given, real), forward, call.key
            ).outputs()[0]
            before = base[example][real] if per_position else base[example]
            moved = (
                (alone - before).abs().flatten(1).amax(-1)
                if per_position
                else (alone - before).abs().amax().reshape(1)
            )
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
        _positions_in(model)
        return
    import torch

    from sawbones.testing.calls import Call, evaluating

    with evaluating(model):
        call = Call(model, batch, forward, source)
        base, length = call.steady(), call.given.shape[1]
        _per_position(base, call.given)
        order = torch.arange(length, device=call.given.device).flip(0)
        other = call.outputs(call.given[:, order])
        moved = float((other - base[:, order]).abs().max())
        if moved <= tolerance * float(base.std()):
            raise broken(
                (
                    f"turning the {length} positions round turns the outputs round and moves "
                    f"them by {moved:.3g}"
                ),
                "more",
            )


def _positions_in(run: Run) -> None:
    steps_taken(run)
    for deep in run.deep:
        probe = deep.probes.get("permutation") or {}
        if probe.get("distance", 1.0) < VISIBLE:
            raise broken(
                f"permuting the input permutes the output and moves it by {probe['distance']:.3g}",
                "more",
                deep.step,
            )
        spread = probe.get("position_spread")
        if spread is not None and spread < VISIBLE:
            raise broken(
                f"one token in all places gets one answer (spread {spread:.3g} over positions)",
                "more",
                deep.step,
            )
