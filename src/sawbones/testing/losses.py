"""What the loss is given, and what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sawbones.schema import Run
from sawbones.stats.loss_calls import Seen, carrying, maker_of, reaching, shift_table
from sawbones.testing.wording import broken, steps_taken

COPIES = 0.95
_ON_LOGITS = (
    "cross_entropy",
    "binary_cross_entropy_with_logits",
    "soft_margin_loss",
    "multilabel_soft_margin_loss",
)
_SQUASHING = ("sigmoid", "sigmoid_", "softmax")


def _losses(run: Run) -> list[Seen]:
    steps_taken(run)
    found = carrying(run) or list(reaching(run))
    if not found:
        raise broken(
            f"no loss was recognised in {len(run.deep)} traced steps of {run.script}", "one"
        )
    return found


def assert_targets_shifted(
    inputs: Any, targets: Any = None, *, by: int = 1, ignore_index: int = -100
) -> None:
    """The target at position t is the input at t + `by`. Of two (batch, time) tensors of ids, or of
    the losses of a run.
    """
    if not isinstance(inputs, Run):
        _shifted(inputs, targets, by, ignore_index)
        return
    for seen in _losses(inputs):
        table = {k: v["copies"] for k, v in shift_table(seen).items() if "copies" in v}
        best = max(table, key=lambda k: (table[k], -abs(k - by)), default=by)
        if table.get(best, 0.0) >= COPIES and table.get(by, 0.0) < min(COPIES, table[best] - 0.02):
            found = (
                f"{table[best]:.0%} of the targets are the input at t{best:+d}, "
                f"{table.get(by, 0.0):.0%} the one at t{by:+d}"
            )
            raise broken(found, f"targets at t{by:+d}", seen.deep.step, seen.call.site)
        packed = seen.facts.get("packed_copies")
        if by and isinstance(packed, float) and packed >= COPIES:
            raise broken(
                f"{packed:.0%} of the targets are the input at t+0",
                f"targets at t{by:+d}",
                seen.deep.step,
                seen.call.site,
            )


def _shifted(inputs: Any, targets: Any, by: int, ignore_index: int) -> None:
    length = inputs.shape[1]
    given, asked = (
        inputs[:, max(by, 0) : length + min(by, 0)],
        targets[:, max(-by, 0) : length - max(by, 0)],
    )
    counted = asked != ignore_index
    wrong = ((given != asked) & counted).nonzero()
    if len(wrong):
        example, column = (int(n) for n in wrong[0])
        position = column + max(-by, 0)
        found = (
            f"example {example}, position {position}: target {int(asked[example, column])}, "
            f"and {len(wrong)} of "
        )
        found += f"{int(counted.sum())} targets in all"
        raise broken(found, f"{int(given[example, column])}, the input at position {position + by}")


def assert_targets_not_in_input(run: Run) -> None:
    """No input of the model holds, at the same position, the very token that the loss asks for."""
    for seen in _losses(run):
        table = {k: v.get("copies", 0.0) for k, v in shift_table(seen).items()}
        if table.get(0, 0.0) >= COPIES and table.get(1, 0.0) < COPIES:
            found = f"{table[0]:.0%} of the targets are the model's input at the same position"
            raise broken(
                found,
                "the token before it: target[:, :-1] in, target[:, 1:] as labels",
                seen.deep.step,
                seen.call.site,
            )


def assert_loss_gets_logits(run: Run) -> None:
    """Losses that take the softmax or sigmoid themselves get raw scores."""
    _losses(run)
    for seen in reaching(run):
        if not seen.is_finite:
            continue
        maker = seen.maker()
        while (
            maker is not None
            and maker.name in ("clamp", "clamp_", "clamp_min", "clamp_max", "dropout")
            and maker.inputs
        ):
            maker = maker_of(seen.deep, maker.inputs[0], maker.index)
        probability = seen.call.fn == "cross_entropy" and bool(
            seen.facts.get("input_is_probability")
        )
        if seen.call.fn in _ON_LOGITS:
            squashed = (
                maker is not None
                and maker.name in ("sigmoid", "sigmoid_")
                and seen.facts.get("input_in_unit_interval", True)
            )
        else:
            below = (
                maker_of(seen.deep, maker.inputs[0], maker.index)
                if maker is not None and maker.inputs
                else None
            )
            last = {
                "binary_cross_entropy": ("sigmoid", "sigmoid_"),
                "nll_loss": ("log_softmax",),
            }.get(seen.call.fn, ())
            squashed = (
                maker is not None
                and maker.name in last
                and below is not None
                and below.name in _SQUASHING
            )
        if probability or squashed:
            low, high = seen.number("input_min"), seen.number("input_max")
            found = (
                f"{seen.call.fn} gets values in [{low:.3g}, {high:.3g}] made by "
                f"{maker.name if maker else 'a softmax'}"
            )
            raise broken(
                found,
                "raw scores",
                seen.deep.step,
                maker.site if maker is not None and maker.site else seen.call.site,
            )


def assert_padding_ignored(run: Run, at_most: float = 0.02) -> None:
    """Padded positions carry no weight in the loss."""
    padded = [(s, p) for s in _losses(run) if (p := _sure_padding(s))]
    counted = [
        (s, p) for s, p in padded if p["weight_share"] >= at_most and p["counted"] > 0.5 * p["rows"]
    ]
    if counted and 2 * len(counted) >= len(padded):
        worst, padding = max(counted, key=lambda item: float(item[1]["weight_share"]))
        share = float(padding["weight_share"])
        found = (
            f"{padding['counted']} of {padding['rows']} padded positions (id "
            f"{padding['pad_id']}) carry {share:.1%} of the loss"
        )
        raise broken(found, "0 %: ignore_index or a mask", worst.deep.step, worst.call.site)


def _sure_padding(seen: Seen) -> Mapping[str, Any] | None:
    """What is known of padded positions, when it is sure that they are padding and what they
    weigh.
    """
    padding = seen.facts.get("padding")
    if (
        not padding
        or (seen.facts.get("weights") or {}).get("fit", 0.0) < 0.9
        or padding["target_share"] < 0.9
    ):
        return None
    number = int(padding["source"])
    source = seen.deep.tokens[number] if number < len(seen.deep.tokens) else None
    if source is None or source.pad_side is None or len(set(source.lengths)) < 2:
        return None
    real = (
        padding["same_vocabulary"] and padding["target"] != padding["pad_id"] and padding["counted"]
    )
    return None if real else dict(padding)


def assert_loss_is_mean(run: Run) -> None:
    """The loss is a mean over its targets: neither the batch size nor the length scales the
    step.
    """
    for seen in _losses(run):
        over = seen.number("root_over_mean")
        if seen.facts.get("effective_reduction") == "sum" and not over < 1.5:
            found = (
                f"the loss is the sum over {seen.facts.get('num_counted')} targets "
                f"({seen.call.value:.4g})"
            )
            raise broken(
                found,
                f"their mean ({seen.number('mean_of_elements'):.4g})",
                seen.deep.step,
                seen.call.site,
            )


def assert_loss_shapes_match(run: Run) -> None:
    """Prediction and target have one shape: nothing is broadcast to pairs of everything."""
    for seen in _losses(run):
        if seen.facts.get("broadcast") and seen.call.target is not None:
            found = f"{seen.call.fn} compares {seen.call.input.shape} with {seen.call.target.shape}"
            raise broken(found, "two equal shapes", seen.deep.step, seen.call.site)
