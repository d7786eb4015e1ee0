"""A decoder that is fed the token that it has to predict

## What it sees
The token inputs of a model that also has another input (an encoder's source, an image), and the
targets of its loss. Fires when at least 95 % of the targets are the decoder's own input at the same
position, the scores at a position depend on that position, and on none after it. For series of
numbers: one of several inputs is the target itself, and changing it at one position changes the
output there and not before, also where a coin decides whether the decoder is fed it. From step 0.

## Why it matters
The answer is in the question: the decoder learns to copy its input, ignores the source, and has
nothing to say when it must generate from its own output.

## Looks like
Training and validation loss go to about zero at once; generated text is noise or repeats the start
token.

## Example
    logits = model(source, target[:, 1:])
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())

## Use instead
    logits = model(source, target[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())

## Confirm it
The comparison of ids and the influence map are the proof: the target itself reaches the scores that
are to predict it.

## False alarms
Teacher forcing with the target shifted right is the right way, and the target is then not at its
own position. An encoder whose source happens to equal the target (copy tasks, autoencoders) is seen
from both sides, not causally. Masked language models count masked positions only. A language model
without any other input is loss.label-shift. A decoder that shifts its input by itself does not move
at the position that was changed.

## References
The PyTorch translation tutorial's tgt_input = tgt[:-1, :] and tgt_out = tgt[1:, :], which is
forgotten easily.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.evidence.limits import loss as limits
from sawbones.schema import DeepStep, Finding, Fix, Influence, Run, Site, TokenInput, Value
from sawbones.stats.copied_targets import (
    CUTTING,
    copied_inputs,
    has_other_input,
    influence_of_copied,
)
from sawbones.stats.loss_calls import Seen, carrying, user_sites
from sawbones.trace.feeding import framework_sites
from sawbones.trace.graph import StepGraph, lookup
from sawbones.trace.locate import locate

NEEDS = ("loss_calls",)
EXPLAINS = (
    "loss.label-shift",
    "evaluation.leak-target",
    "evaluation.overfitting",
    "data.labels-misaligned",
    "model.causal-leak",
    "pipeline.tokenizer-mismatch",
)
EXPERIMENT = None

_MAKING = CUTTING | {"tensor", "stack", "pad_sequence"}


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in carrying(run) if s.facts.shift]
    series = [d for d in run.deep if (d.probes.get("forecast") or {}).get("ahead") == 0]
    if not calls and not series:
        raise NothingToJudge("no loss had targets that could be compared with an input in time")
    yield from _of_numbers(run, series)
    fed = [(s, own) for s in calls if (own := _own_share(s)) is not None and _other_input(s)]
    if not fed or not limits.FED_STEPS.reached_by(len(fed) / len(calls)):
        return
    seen, own = fed[0]
    last = fed[-1][0]
    yield finding(
        "The decoder is fed the token that it has to predict",
        _where(run, [s for s, _ in fed]),
        (
            context(
                f"{100 * seen.facts.shift[0]['copies']:.0f} % of the targets equal the decoder's "
                f"input at the same position, on {len(fed)} deep steps",
                signal="loss_calls",
                steps=[s.deep.step for s, _ in fed],
                value=float(seen.facts.shift[0]["copies"]),
                expected=0,
            ),
            exact(
                "the scores of a step depend on what was looked up in that very step"
                if own == 1
                else f"{100 * own:.0f} % of the decoder input's influence on a score comes from "
                "that very position",
                own,
                signal="influence",
                steps=(seen.deep.step,),
            ),
            context(
                f"at step {last.deep.step} {100 * last.number('accuracy'):.0f} % of the "
                "targets are predicted right",
                signal="loss_calls",
                steps=(last.deep.step,),
                value=last.number("accuracy"),
            ),
        ),
        Fix(
            "Feed the decoder the target shifted right by one: target[:, :-1] in, "
            "target[:, 1:] as labels."
        ),
    )


def _of_numbers(run: Run, series: list[DeepStep]) -> Iterator[Finding]:
    """Series of numbers: one input of the model is the target itself, and what it says at a place
    goes into the output there.
    """
    probes = [deep.probes["forecast"] for deep in series]
    if not all(limits.EARLIER_OUTPUTS_STAY.undercut_by(probe["earlier"]) for probe in probes):
        return
    # Where a coin decides what the decoder is fed, it may fall the other way on a deep step.
    moved = [probe for probe in probes if limits.OWN_VALUE_MOVES.passed_by(probe["own"])]
    if not moved:
        return
    probe = moved[0]
    calls = [s.call.site for s in carrying(run) if s.deep is series[0]]
    forwards = [e for e in run.of_kind("forward") if e.phase == "train"]
    yield finding(
        "The decoder is fed the value that it has to predict",
        locate(*forwards[:1], *calls[:1]),
        (
            exact(
                f"one input {tuple(probe['shape'])} of the model equals the target on "
                f"{len(series)} deep steps; changing it at one position moves the output "
                f"there by {probe['own']:.2g} of its spread and none before",
                float(probe["own"]),
                signal="probes",
                steps=[d.step for d in series],
            ),
        ),
        Fix(
            "Feed the decoder the target shifted right by one: the last known value "
            "first, then target[:, :-1]."
        ),
    )


def _own_share(seen: Seen) -> float | None:
    """How much of the influence on a score comes from its own position of the input that equals the
    targets, if it is causal.
    """
    table = {k: v.get("copies") for k, v in seen.facts.shift.items()}
    copied = limits.TARGETS_COPIED.reached_by
    if not copied(table.get(0)) or copied(table.get(1)) or seen.facts.copied_at != 0:
        return None
    if seen.facts.stepwise is not None:
        return 1 if seen.facts.stepwise.visible else None
    item = influence_of_copied(seen)
    if item is None or not limits.CAUSAL_FUTURE.undercut_by(item.future):
        return None
    return item.self if limits.OWN_INFLUENCE.passed_by(item.self) else None


def _other_input(seen: Seen) -> bool:
    names = {f"embedding:{n}" for n in copied_inputs(seen)}
    influential = [i for i in seen.deep.influence if i.source not in names and i.dependent > 0]
    return any(_is_content(seen, i) for i in influential) or has_other_input(seen)


def _is_content(seen: Seen, item: Influence) -> bool:
    """Positions and segments are no second input."""
    if not item.source.startswith("embedding:"):
        return True
    number = int(item.source.split(":")[1])
    return number < len(seen.deep.tokens) and seen.deep.tokens[number].role == "tokens"


def _where(run: Run, seen: list[Seen]) -> tuple[Site, ...]:
    framework = framework_sites(run)
    cuts = [
        *_cut_outputs(seen[0]),
        *locate(seen[0].facts.stepwise),
        *(x for s in seen for x in user_sites(s.deep, _MAKING, _ids(s), s.call.op)),
    ]
    calls = [e.site for e in run.of_kind("forward") if e.phase == "train"][:1]
    given = [site for site in (*cuts[:2], *calls) if site not in framework]
    targets = [x for s in seen for x in user_sites(s.deep, _MAKING, s.call.target, s.call.op)]
    targets = [site for site in targets if site not in framework]
    return locate(*given, *targets[:2], seen[0].call)[:5]


def _decoder_input(seen: Seen) -> TokenInput | None:
    number = seen.facts.copied_from
    known = number is not None and number in range(len(seen.deep.tokens))
    return seen.deep.tokens[number] if number is not None and known else None


def _cut_outputs(seen: Seen) -> list[Site]:
    """Where one or two positions are cut off what was made from the decoder's input: at the wrong
    end.
    """
    source = _decoder_input(seen)
    start = lookup(seen.deep, source) if source is not None else None
    if source is None or start is None or source.time_dim is None:
        return []
    time = source.time_dim
    reached = StepGraph(seen.deep).reached(start.outputs)
    for op in seen.deep.ops:
        if op.name not in ("__getitem__", "narrow") or op.site is None or not op.outputs:
            continue
        before, after = op.inputs[0].shape, op.outputs[0].shape
        if op.inputs[0].id not in reached or len(before) != len(after):
            continue
        shrunk = [d for d in range(len(before)) if before[d] != after[d]]
        if shrunk == [time] and before[time] - after[time] in (1, 2) and after[time] > 2:
            return [op.site]
    return []


def _ids(seen: Seen) -> Value | None:
    """The ids of the decoder's input as the embedding got them."""
    source = _decoder_input(seen)
    if source is None:
        return None
    for op in seen.deep.ops:
        if op.name in ("embedding", "__getitem__", "index_select") and op.site == source.site:
            for value in op.inputs:
                if value.shape == source.shape and value.dtype.startswith("int"):
                    return value
    return None
