"""Targets shifted against the inputs by the wrong number of steps

## What it sees
Token ids that go into the model and the targets of its loss, compared at shifts from -3 to 3: of a
language model or a decoder with teacher forcing, the target at t is the input at t + 1. Fires when
at least 95 % of the counted targets are the input at another shift (and not also at + 1), and the
model is causal, so that a shift of 0 or less means copying and of 2 or more means predicting past
the next token. From step 0, when every deep step agrees. Of forecasts from a window of numbers: the
first target is the last number of the window, in every row.

## Why it matters
With a shift of 0 or -1 the answer is already in the input: the loss goes to zero and nothing is
learned. With + 2 the model learns a harder task that generation never asks for, and its samples
skip every other token.

## Looks like
Loss near zero within a few steps, with useless samples; or a loss that stays too high and samples
that make no sense.

## Example
    inputs, targets = tokens[:, :-1], tokens[:, :-1]
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

## Use instead
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

## Confirm it
The shift scan is the proof: it compares the very ids that entered the model and the loss.

## False alarms
Masked language models count only masked positions, where the input is not the target. Encoders that
see both sides and autoencoders may be asked for their own input and are only suspected. Several
heads for several steps ahead are silent when one of them predicts the next token. Models that shift
inside (Hugging Face) are judged by what reaches the loss. Text that repeats, so that + 1 fits as
well, is silent. Autoencoders of windows have targets as long as their input. Models that answer at
every step of the window are asked for numbers of the window itself. A decoder next to an encoder
with its own target as input is loss.target-in-input.

## References
Hugging Face issues about labels that are shifted in the collator and again in the model; the
no-shift variant is the first thing to look at when a language model's loss is too good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import data_function, lines_in
from sawbones.stats.loss_calls import (
    Seen,
    as_site,
    carrying,
    data_sites,
    framework_sites,
    given_numbers,
    places,
    reaching,
    shift_table,
    user_sites,
)

NEEDS = ("loss_calls",)
EXPLAINS = (
    "loss.target-in-input",
    "evaluation.leak-target",
    "evaluation.overfitting",
    "model.causal-leak",
    "data.labels-misaligned",
)
EXPERIMENT = None
COPIES = 0.95

_CUTTING = frozenset(
    {
        "__getitem__",
        "narrow",
        "roll",
        "index_select",
        "split",
        "chunk",
        "cat",
        "pad",
        "select",
        "gather",
        "unfold",
        "tensor_split",
    }
)
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_MAKING = frozenset(
    {"tensor", "stack", "pad_sequence", "__getitem__", "cat", "from_numpy", "as_tensor"}
)


def check(run: Run) -> Iterator[Finding]:
    matched = [(s, k) for s in reaching(run) if (k := _shift(s)) is not None]
    if not matched:
        yield from [*_packed(run)] or _window(run)
    if not matched or any(k == 1 for _, k in matched):
        return
    known = [(s, k) for s, k in matched if s.facts.get("main")]
    if not known or len({k for _, k in known}) > 1:
        return
    first, shift = known[0]
    causal = [c for s, _ in known if (c := _is_causal(s)) is not None]
    if shift <= 0 and _has_other_input(first):
        return
    sure = shift > 1 or (bool(causal) and all(causal))
    table = shift_table(first)
    copies = float(table[shift]["copies"])
    steps = tuple(s.deep.step for s, _ in known)
    last = known[-1][0]
    yield Finding(
        "loss.label-shift",
        "proven" if sure else "suspected",
        0.96 if sure else 0.4,
        _title(shift),
        _where(run, [s for s, _ in known]),
        (
            Evidence(
                f"{100 * copies:.0f} % of the targets equal the input token at t{shift:+d}, and "
                f"{100 * float(table.get(1, {}).get('copies', 0.0)):.0f} % the one at t+1, on {len(known)} deep steps",
                "loss_calls",
                steps,
                float(shift),
                1.0,
            ),
            Evidence(
                f"at step {last.deep.step} the loss is {last.call.value if last.call.value is not None else float('nan'):.4g} and "
                f"{100 * last.number('accuracy'):.0f} % of the targets are predicted right",
                "loss_calls",
                (last.deep.step,),
                last.call.value,
            ),
        ),
        Fix(
            "Let the target at t be the token at t + 1 of the input, shifted once: in the "
            "data, in the loss or in the model."
        ),
    )


def _packed(run: Run) -> Iterator[Finding]:
    """Packed sequences through a recurrent layer of one direction: the target is the token that
    goes in at the same place.
    """
    looked = [s for s in carrying(run) if "packed_copies" in s.facts and _one_way(run, s)]
    varied = [s for s in looked if int(s.facts.get("target_num_values") or 0) >= 5]
    if not varied or any(float(s.facts["packed_copies"]) < COPIES for s in looked):
        return
    share = min(float(s.facts["packed_copies"]) for s in looked)
    text = (
        f"{100 * share:.0f} % of the packed targets equal the token that goes in at the same "
        f"place, on {len(looked)} deep steps"
    )
    rows = [r for r in run.facts.get("data_ops") or () if str(r.get("dtype")).startswith("int")]
    made = [as_site(r.get("site")) for r in reversed(rows)]
    call = looked[0].call.site
    yield Finding(
        "loss.label-shift",
        "proven",
        0.95,
        _title(0),
        places(*[site for site in made if site != call][:3], call),
        (Evidence(text, "loss_calls", tuple(s.deep.step for s in looked), share, 0.0),),
        Fix(
            "Pack the sequences without their first token as targets and those without "
            "their last as inputs."
        ),
    )


def _window(run: Run) -> Iterator[Finding]:
    """A forecast whose first steps are the last of the window that the model is given."""
    probed = [(d, d.probes["window"]) for d in run.deep if d.probes.get("window")]
    calls = carrying(run)
    if not calls or len({w["common"] for _, w in probed}) != 1:
        return
    window = probed[0][1]
    common, horizon = int(window["common"]), int(window["horizon"])
    what = (
        "The target is"
        if horizon == 1
        else f"The first {common} of {horizon} targets are"
        if common > 1
        else "The first target is"
    )
    yield Finding(
        "loss.label-shift",
        "proven",
        0.93,
        (
            f"{what} already in the window that the model is given: the targets start "
            f"{common} step{'s' * (common > 1)} too early"
        ),
        _windows_made_at(run, calls[0], horizon),
        (
            Evidence(
                (
                    f"in every row the last {common} of {window['window']} inputs equal the "
                    f"first {common} of {horizon} targets"
                ),
                "deep",
                tuple(d.step for d, _ in probed),
                float(common),
                0.0,
            ),
        ),
        Fix(
            "Let the targets start one step after the end of the window: series[i + "
            "window : i + window + horizon]."
        ),
    )


def _windows_made_at(run: Run, seen: Seen, horizon: int) -> tuple[Site, ...]:
    """Where the targets were cut out of the series or became tensors."""
    framework = framework_sites(run) | {e.site for e in run.of_kind("batch")}
    cut = user_sites(seen.deep, _CUTTING, seen.call.target, seen.call.op)
    rows = [
        row
        for row in run.facts.get("data_ops") or ()
        if row.get("op") in _MAKING
        and str(row.get("dtype")).startswith("float")
        and _ends_in(row.get("shape") or (), horizon)
    ]
    made = [as_site(row.get("site")) for row in rows]
    reads = data_function(run, "reads")
    read = (
        [Site(reads[0], max(reads[1], reads[2] - 2), "__getitem__", "")]
        if reads is not None
        else []
    )
    found = [site for site in (*cut, *made) if site is not None and site not in framework]
    return places(
        *[s for s in found if lines_in([s], reads)],
        *read,
        *found[:3],
        *(as_site(entry.get("site")) for entry in (run.facts.get("loaders") or ())[:1]),
        seen.call.site,
    )


def _ends_in(shape: Sequence[int], horizon: int) -> bool:
    """Rows of targets: (rows, horizon), or (rows,) and (rows, 1) for a single step."""
    sizes = [size for size in shape[1:] if size != 1]
    return len(shape) >= 1 and sizes == ([horizon] if horizon > 1 else [])


def _one_way(run: Run, seen: Seen) -> bool:
    both = {m.path for m in run.modules if m.settings.get("bidirectional")}
    layers = [
        op
        for op in seen.deep.ops
        if op.name in _RECURRENT and not op.args.get("no_grad") and op.index < seen.call.op
    ]
    return bool(layers) and all(op.module not in both for op in layers)


def _shift(seen: Seen) -> int | None:
    """The one shift at which the targets are the input; None when there is none or the next token
    fits as well.
    """
    table = {k: v["copies"] for k, v in shift_table(seen).items() if "copies" in v}
    if not table:
        return None
    best = max(table, key=lambda k: (table[k], -abs(k - 1)))
    if table[best] < COPIES:
        return None
    return 1 if table.get(1, 0.0) >= min(COPIES, table[best] - 0.02) else best


def _is_causal(seen: Seen) -> bool | None:
    """Whether the scores depend on no later token of the input that the targets are copied from."""
    if (
        "stepwise" in seen.facts
    ):  # a loop over time can't look ahead; whether it looks at its own step was measured
        return bool(seen.facts["stepwise"]["visible"])
    source = seen.facts.get("copied_from")
    for item in seen.deep.influence:
        if item.source == f"embedding:{source}" and item.future is not None:
            return item.future < 0.01
    return None


def _has_other_input(seen: Seen) -> bool:
    """A second sequence of tokens goes in: the first is a decoder's input (or the target is a copy
    of a source on purpose).
    """
    steps = seen.facts.get("stepwise")
    mine = set(steps["sources"]) if steps else {seen.facts.get("copied_from")}
    others = [t for i, t in enumerate(seen.deep.tokens) if t.role == "tokens" and i not in mine]
    return any(steps or len(t.shape) == 2 for t in others) or given_numbers(seen)


def _title(shift: int) -> str:
    if shift == 0:
        return (
            "The targets are not shifted: the model is asked for the token that it was just given"
        )
    if shift < 0:
        return (
            "The targets are shifted the wrong way: the model is asked for a token that it "
            f"saw {-shift} step(s) ago"
        )
    return (
        f"The targets are shifted too far: the model is asked for the token {shift} ahead, "
        "not for the next one"
    )


def _where(run: Run, seen: list[Seen]) -> tuple[Site, ...]:
    framework = framework_sites(run)
    cuts: list[Site] = []
    for s in seen:
        cuts += [
            site
            for site in user_sites(s.deep, _CUTTING, s.call.target, s.call.op)
            if site not in framework
        ]
    shape = tuple(seen[0].facts.get("sequence_shape") or ())
    made = [site for site in data_sites(run, shape, _MAKING) if site not in framework]
    call = seen[0].call.site
    return places(*cuts[:3], *made[:2], *([call] if call not in framework else []), call)[:5]
