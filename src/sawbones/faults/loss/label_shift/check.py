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
inside (Hugging Face) are judged by what reaches the loss. A model that reads from right to left is
asked for the token before. Text that repeats, so that + 1 fits as
well, is silent. Autoencoders of windows have targets as long as their input. Models that answer at
every step of the window are asked for numbers of the window itself. A decoder next to an encoder
with its own target as input is loss.target-in-input.

## References
Hugging Face issues about labels that are shifted in the collator and again in the model; the
no-shift variant is the first thing to look at when a language model's loss is too good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.copied_targets import CUTTING, has_other_input, influence_of_copied
from sawbones.stats.loss_calls import Seen, carrying, reaching, user_sites
from sawbones.trace.feeding import data_sites, framework_sites
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import lines_in

NEEDS = ("loss_calls",)
USES = ("made_tensors", "loaders", "data_code")
EXPLAINS = (
    "loss.target-in-input",
    "evaluation.leak-target",
    "evaluation.overfitting",
    "model.causal-leak",
    "data.labels-misaligned",
)
EXPERIMENT = None
MIN_VALUES = 5  # different targets: a copy of fewer may be chance

_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_MAKING = frozenset(
    {"tensor", "stack", "pad_sequence", "__getitem__", "cat", "from_numpy", "as_tensor"}
)


def check(run: Run) -> Iterator[Finding]:
    packed = [s for s in carrying(run) if s.facts.packed_copies is not None and _one_way(run, s)]
    windows = [(d.step, d.probes["window"]) for d in run.deep if d.probes.get("window")]
    if not packed and not windows and not any(s.facts.shift for s in reaching(run)):
        raise NothingToJudge("no loss had targets that are ordered in time as one of the inputs is")
    matched = [(s, k) for s in reaching(run) if (k := _shift(s)) is not None]
    if not matched:
        yield from [*_packed(run, packed)] or _window(run, windows)
        return
    known = [(s, k) for s, k in matched if s.facts.main]
    shifts = {k for _, k in known}
    if len(shifts) == 1 and not any(k == _following(s) for s, k in matched):
        yield from _shifted(run, [s for s, _ in known], shifts.pop())


def _shifted(run: Run, seen: list[Seen], shift: int) -> Iterator[Finding]:
    following = _following(seen[0])
    ahead = shift * following  # in the direction in which the model reads
    if ahead <= 0 and has_other_input(seen[0]):
        return
    causal = [c for s in seen if (c := _is_causal(s)) is not None]
    sure = ahead > 1 or (bool(causal) and all(causal))
    table = seen[0].facts.shift
    last = seen[-1]
    value = math.nan if last.call.value is None else last.call.value
    yield finding(
        _title(ahead),
        _where(run, seen),
        (
            exact(
                f"{100 * table[shift]['copies']:.0f} % of the targets equal the input token at "
                f"t{shift:+d}, and {100 * table.get(following, {}).get('copies', 0):.0f} % the one "
                f"at t{following:+d}, on {len(seen)} deep steps",
                shift,
                expected=following,
                signal="loss_calls",
                steps=[s.deep.step for s in seen],
            ),
            context(
                f"at step {last.deep.step} the loss is {value:.4g} and "
                f"{100 * last.number('accuracy'):.0f} % of the targets are predicted right",
                signal="loss_calls",
                steps=(last.deep.step,),
                value=last.call.value,
            ),
        ),
        Fix(
            f"Let the target at t be the token at t {'-' if following < 0 else '+'} 1 of the input, "
            "shifted once: in the data, in the loss or in the model."
        ),
        at_most="proven" if sure else "suspected",
    )


def _packed(run: Run, looked: list[Seen]) -> Iterator[Finding]:
    """Packed sequences through a recurrent layer of one direction: the target is the token that
    goes in at the same place.
    """
    varied = any(int(s.facts.target_num_values or 0) >= MIN_VALUES for s in looked)
    copies = [s.facts.packed_copies or 0 for s in looked]
    if not varied or not all(map(limits.TARGETS_COPIED.reached_by, copies)):
        return
    rows = [r for r in run.made_tensors if r.dtype.startswith("int")]
    made = [r.site for r in reversed(rows)]
    call = looked[0].call.site
    yield finding(
        _title(0),
        locate(*[site for site in made if site != call][:3], call),
        (
            exact(
                f"{100 * min(copies):.0f} % of the packed targets equal the token that goes in at "
                f"the same place, on {len(looked)} deep steps",
                0,
                expected=1,
                signal="loss_calls",
                steps=[s.deep.step for s in looked],
            ),
        ),
        Fix(
            "Pack the sequences without their first token as targets and those without "
            "their last as inputs."
        ),
    )


def _window(run: Run, probed: list[tuple[int, dict[str, int]]]) -> Iterator[Finding]:
    """A forecast whose first steps are the last of the window that the model is given."""
    calls = carrying(run)
    if not calls or len({window["common"] for _, window in probed}) != 1:
        return
    window = probed[0][1]
    common, horizon = int(window["common"]), int(window["horizon"])
    what = "The target is" if horizon == 1 else "The first target is"
    if horizon > 1 and common > 1:
        what = f"The first {common} of {horizon} targets are"
    yield finding(
        f"{what} already in the window that the model is given: the targets start "
        f"{common} step{'s' * (common > 1)} too early",
        _windows_made_at(run, calls[0], horizon),
        (
            exact(
                f"in every row the last {common} of {window['window']} inputs equal the "
                f"first {common} of {horizon} targets",
                common,
                signal="deep",
                steps=[step for step, _ in probed],
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
    cut = user_sites(seen.deep, CUTTING, seen.call.target, seen.call.op)
    made = [
        row.site
        for row in run.made_tensors
        if row.op in _MAKING and row.dtype.startswith("float") and _ends_in(row.shape, horizon)
    ]
    found = [site for site in (*cut, *made) if site is not None and site not in framework]
    reads = run.data_code.reads
    inside = list(lines_in(found, reads))
    if reads is not None:
        inside.append(Site(reads[0], max(reads[1], reads[2] - 2), "__getitem__", ""))
    loaders = [loader.site for loader in run.loaders[:1]]
    return locate(*inside, *found[:3], *loaders, seen.call)


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
    """The one shift at which the targets are the input; None when there is none, that of the next
    token when it fits as well as the best.
    """
    table = {k: v["copies"] for k, v in seen.facts.shift.items() if "copies" in v}
    if not table:
        return None
    next_token = _following(seen)
    best = max(table, key=lambda k: (table[k], -abs(k - next_token)))
    if not limits.TARGETS_COPIED.reached_by(table[best]):
        return None
    following = table.get(next_token, 0)
    fits = limits.TARGETS_COPIED.reached_by(following)
    alike = limits.NEXT_TOKEN_BEHIND.kept_by(table[best] - following)
    return next_token if fits or alike else best


def _following(seen: Seen) -> int:
    """At which shift the next token stands: -1 for a model that reads from right to left, whose
    scores depend on later tokens and on no earlier one.
    """
    item = influence_of_copied(seen) if seen.facts.stepwise is None else None
    if item is None or item.past is None or item.future is None:
        return 1
    unseen = limits.CAUSAL_FUTURE
    return -1 if unseen.undercut_by(item.past) and not unseen.undercut_by(item.future) else 1


def _is_causal(seen: Seen) -> bool | None:
    """Whether the scores depend on no token of the input that the targets are copied from which
    the model has not read yet.
    """
    if seen.facts.stepwise is not None:
        # A loop over time can't look ahead; whether it looks at its own step was measured.
        return bool(seen.facts.stepwise.visible)
    item = influence_of_copied(seen)
    if item is None:
        return None
    unread = item.future if _following(seen) == 1 else item.past
    return limits.CAUSAL_FUTURE.undercut_by(unread)


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
    cuts = [x for s in seen for x in user_sites(s.deep, CUTTING, s.call.target, s.call.op)]
    cuts = [site for site in cuts if site not in framework]
    shape = tuple(seen[0].facts.sequence_shape or ())
    made = [site for site in data_sites(run, shape, _MAKING) if site not in framework]
    return locate(*cuts[:3], *made[:2], seen[0].call)[:5]
