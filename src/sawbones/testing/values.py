"""Numbers that must be finite, in range, on a sane scale, and on one side of a split only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sawbones.schema import Run
from sawbones.stats.splits import shared, splits
from sawbones.testing.wording import broken, steps_taken
from sawbones.trace.feeding import built_loaders


def assert_runs(run: Run) -> None:
    """The script came as far as it was asked to, without an exception."""
    steps_taken(run)


def assert_finite(thing: Any, name: str = "value") -> None:
    """No NaN and no infinity: in a tensor (or a list or dict of them), or in batches, losses and
    gradients of a run.
    """
    if not isinstance(thing, Run):
        _finite(thing, name)
        return
    for batch in thing.batches:
        for tensor in batch.tensors:
            if tensor.get("nonfinite"):
                found = (
                    f"{tensor['nonfinite']} values of {tensor.get('path') or 'the batch'} "
                    f"{tuple(tensor['shape'])} are not finite"
                )
                raise broken(found, "0", batch.step)
    if (first := thing.nonfinite) is not None:
        found = f"{first.op} makes {first.nonfinite} values that are not finite"
        raise broken(found, "0", first.step, first.site)
    skipped = thing.steps.get("skipped", np.zeros(thing.num_steps))
    for column in ("loss", "grad_norm"):
        values = thing.steps.get(column, np.zeros(0))
        bad = np.flatnonzero(~np.isfinite(values) & (skipped[: len(values)] == 0))
        if column == "grad_norm":
            bad = np.array(
                [i for i in bad if not math.isnan(values[i]) or not math.isfinite(thing.losses[i])],
                int,
            )
        if len(bad):
            step = int(thing.steps["step"][bad[0]])
            site = next((e.site for e in thing.of_kind("backward") if e.step == step), None)
            raise broken(
                f"{column} is {values[bad[0]]} at {len(bad)} of {len(values)} steps",
                "finite",
                step,
                site,
            )
    steps_taken(thing)


def _finite(thing: Any, name: str) -> None:
    import torch

    if isinstance(thing, torch.Tensor):
        bad = (~torch.isfinite(thing)).nonzero()
        if len(bad):
            place = tuple(int(n) for n in bad[0])
            found = (
                f"{name}[{', '.join(map(str, place))}] is {float(thing[place])}, and "
                f"{len(bad)} of {thing.numel()} in all"
            )
            raise broken(found, "finite")
    elif isinstance(thing, dict):
        for key, value in thing.items():
            _finite(value, f"{name}[{key!r}]")
    elif isinstance(thing, (list, tuple)):
        for i, value in enumerate(thing):
            _finite(value, f"{name}[{i}]")
    elif isinstance(thing, float) and not math.isfinite(thing):
        raise broken(f"{name} is {thing}", "finite")


def assert_normalised(
    inputs: Any, *, mean: float = 2.0, std: tuple[float, float] = (0.1, 5.0)
) -> None:
    """Inputs (a float tensor) have a mean near 0 and a spread near 1."""
    values = inputs.double()
    center, spread = float(values.mean()), float(values.std())
    if abs(center) > mean or not std[0] <= spread <= std[1]:
        low, high = float(values.min()), float(values.max())
        found = (
            f"inputs have mean {center:.3g} and spread {spread:.3g} (from {low:.3g} to {high:.3g})"
        )
        raise broken(found, f"a mean within {mean:g} of 0 and a spread in [{std[0]:g}, {std[1]:g}]")


def assert_labels_in_range(labels: Any, num_classes: int, ignore_index: int = -100) -> None:
    """Class labels are whole numbers from 0 to num_classes - 1, or ignored."""
    if labels.is_floating_point():
        raise broken(f"labels are {labels.dtype}", "whole numbers")
    wrong = (((labels < 0) | (labels >= num_classes)) & (labels != ignore_index)).nonzero()
    if len(wrong):
        place = tuple(int(n) for n in wrong[0])
        at = ", position ".join(map(str, place))
        found = (
            f"example {at}: label {int(labels[place])}, and {len(wrong)} of {labels.numel()} in all"
        )
        raise broken(found, f"0 to {num_classes - 1}, or {ignore_index}")


def assert_splits_disjoint(run: Run, at_most: float = 0.02) -> None:
    """What is evaluated was not trained on, sample by sample and bit for bit."""
    steps_taken(run)
    for part in splits(run):
        for source, batches in part.sources().items():
            hit, total = shared(batches, part.trained_on)
            if total and hit > at_most * total:
                found = f"{hit} of {total} evaluated samples were trained on"
                raise broken(
                    found,
                    f"at most {at_most:.0%}",
                    batches[0].step,
                    next(iter(built_loaders(run, source)), None),
                )
