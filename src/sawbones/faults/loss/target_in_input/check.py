"""A decoder that is fed the token that it has to predict

## What it sees
The token inputs of a model that also has another input (an encoder's source, an image), and the
targets of its loss. Fires when at least 95 % of the targets are the decoder's own input at the same
position, the scores at a position depend on that position, and on none after it. For series of
numbers: one of several inputs is the target itself, and changing it from one position on changes
the output there and not before. From step 0, when every deep step agrees.

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

from sawbones.schema import Evidence, Finding, Fix, Influence, Run, Site, Value
from sawbones.stats.dataflow import Flow, lookup
from sawbones.stats.loss_calls import (
    Seen,
    as_site,
    carrying,
    framework_sites,
    given_numbers,
    places,
    shift_table,
    user_sites,
)

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
COPIES = 0.95
MOVED = 1e-3  # of the outputs' spread
UNMOVED = 1e-5

_CUTTING = frozenset(
    {
        "__getitem__",
        "narrow",
        "roll",
        "cat",
        "pad",
        "index_select",
        "split",
        "tensor",
        "stack",
        "pad_sequence",
    }
)


def check(run: Run) -> Iterator[Finding]:
    yield from _of_numbers(run)
    calls = [s for s in carrying(run) if shift_table(s)]
    fed = [(s, i) for s in calls if (i := _own_share(s)) is not None and _other_input(s)]
    if not fed or len(fed) < 0.5 * len(calls):
        return
    seen, own = fed[0]
    copies = float(shift_table(seen)[0]["copies"])
    last = fed[-1][0]
    yield Finding(
        "loss.target-in-input",
        "proven",
        0.96,
        "The decoder is fed the token that it has to predict",
        _where(run, [s for s, _ in fed]),
        (
            Evidence(
                (
                    f"{100 * copies:.0f} % of the targets equal the decoder's input at the "
                    f"same position, on {len(fed)} deep steps"
                ),
                "loss_calls",
                tuple(s.deep.step for s, _ in fed),
                copies,
                0.0,
            ),
            Evidence(
                (
                    f"{100 * own:.0f} % of the decoder input's influence on a score comes "
                    "from that very position"
                )
                if own < 1
                else "the scores of a step depend on what was looked up in that very step",
                "influence",
                (seen.deep.step,),
                own,
                0.0,
            ),
            Evidence(
                (
                    f"at step {last.deep.step} {100 * last.number('accuracy'):.0f} % of the "
                    "targets are predicted right"
                ),
                "loss_calls",
                (last.deep.step,),
                last.number("accuracy"),
            ),
        ),
        Fix(
            "Feed the decoder the target shifted right by one: target[:, :-1] in, "
            "target[:, 1:] as labels."
        ),
    )


def _of_numbers(run: Run) -> Iterator[Finding]:
    """Series of numbers: one input of the model is the target itself, and what it says at a place
    goes into the output there.
    """
    looked = [
        (deep, probe)
        for deep in run.deep
        if (probe := deep.probes.get("forecast") or {}).get("ahead") == 0
    ]
    fed = [
        (deep, probe)
        for deep, probe in looked
        if probe["own"] > MOVED and probe["earlier"] < UNMOVED
    ]
    if not fed or len(fed) < len(looked):
        return
    deep, probe = fed[0]
    text = (
        f"one input {tuple(probe['shape'])} of the model equals the target on {len(fed)} deep steps; changing it from one position "
        f"on moves the output there by {probe['own']:.2g} of its spread and none before"
    )
    calls = [s.call.site for s in carrying(run) if s.deep is deep]
    forwards = [e.site for e in run.of_kind("forward") if e.phase == "train" and e.data.get("top")][
        :1
    ]
    yield Finding(
        "loss.target-in-input",
        "proven",
        0.95,
        "The decoder is fed the value that it has to predict",
        places(*forwards, *calls[:1]),
        (Evidence(text, "probes", tuple(d.step for d, _ in fed), float(probe["own"]), 0.0),),
        Fix(
            "Feed the decoder the target shifted right by one: the last known value "
            "first, then target[:, :-1]."
        ),
    )


def _own_share(seen: Seen) -> float | None:
    """How much of the influence on a score comes from its own position of the input that equals the
    targets, if it is causal.
    """
    table = {k: v.get("copies", 0.0) for k, v in shift_table(seen).items()}
    if (
        table.get(0, 0.0) < COPIES
        or table.get(1, 0.0) >= COPIES
        or seen.facts.get("copied_at") != 0
    ):
        return None
    if "stepwise" in seen.facts:
        return 1.0 if seen.facts["stepwise"]["visible"] else None
    for item in seen.deep.influence:
        if item.source == f"embedding:{seen.facts.get('copied_from')}" and item.future is not None:
            return item.self if item.future < 0.01 and (item.self or 0.0) > 0.02 else None
    return None


def _other_input(seen: Seen) -> bool:
    steps = seen.facts.get("stepwise")
    mine = set(steps["sources"]) if steps else {seen.facts.get("copied_from")}
    names = {f"embedding:{n}" for n in mine}
    if any(
        i.source not in names and i.dependent > 0 and _is_content(seen, i)
        for i in seen.deep.influence
    ):
        return True
    others = [t for n, t in enumerate(seen.deep.tokens) if t.role == "tokens" and n not in mine]
    return any(steps or len(t.shape) == 2 for t in others) or given_numbers(seen)


def _is_content(seen: Seen, item: Influence) -> bool:
    """Positions and segments are no second input."""
    if not item.source.startswith("embedding:"):
        return True
    number = int(item.source.split(":")[1])
    return number < len(seen.deep.tokens) and seen.deep.tokens[number].role == "tokens"


def _where(run: Run, seen: list[Seen]) -> tuple[Site, ...]:
    framework = framework_sites(run)
    cuts: list[Site] = [
        s for s in [as_site((seen[0].facts.get("stepwise") or {}).get("site"))] if s is not None
    ]
    for s in seen:
        cuts += user_sites(s.deep, _CUTTING, _ids(s), s.call.op)
    calls = [e.site for e in run.of_kind("forward") if e.phase == "train"][:1]
    cuts = [*_cut_outputs(seen[0]), *cuts]
    given = [site for site in (*cuts[:2], *calls) if site not in framework]
    targets = [
        t
        for s in seen
        for t in user_sites(s.deep, _CUTTING, s.call.target, s.call.op)
        if t not in framework
    ]
    return places(*given, *targets[:2], seen[0].call.site)[:5]


def _cut_outputs(seen: Seen) -> list[Site]:
    """Where one or two positions are cut off what was made from the decoder's input: at the wrong
    end.
    """
    number = int(seen.facts.get("copied_from", -1))
    start = (
        lookup(seen.deep, seen.deep.tokens[number]) if 0 <= number < len(seen.deep.tokens) else None
    )
    if start is None or seen.deep.tokens[number].time_dim is None:
        return []
    time = seen.deep.tokens[number].time_dim or 0
    reached = Flow(seen.deep).reached([v.id for v in start.outputs])
    found = []
    for op in seen.deep.ops:
        if (
            op.name not in ("__getitem__", "narrow")
            or op.site is None
            or not op.outputs
            or op.inputs[0].id not in reached
        ):
            continue
        before, after = op.inputs[0].shape, op.outputs[0].shape
        shrunk = (
            [d for d in range(len(before)) if before[d] != after[d]]
            if len(before) == len(after)
            else []
        )
        if shrunk == [time] and 1 <= before[time] - after[time] <= 2 and after[time] > 2:
            found.append(op.site)
    return found[:1]


def _ids(seen: Seen) -> Value | None:
    """The ids of the decoder's input as the embedding got them."""
    number = int(seen.facts.get("copied_from", -1))
    if not 0 <= number < len(seen.deep.tokens):
        return None
    source = seen.deep.tokens[number]
    for op in seen.deep.ops:
        if op.name in ("embedding", "__getitem__", "index_select") and op.site == source.site:
            for value in op.inputs:
                if value.shape == source.shape and value.dtype.startswith("int"):
                    return value
    return None
