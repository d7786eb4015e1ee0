"""A run against a recording from when it worked: what differs, in the order in which one could
have brought the other about. What was installed and asked for, then settings, then data, then what
the loop did, and last the losses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sawbones.masking import shown_line
from sawbones.schema import Difference, Event, Optimizer, Run, Site
from sawbones.store.uncommitted import changed_lines, uncommitted
from sawbones.trials.twin import compare

# Part of the machine, or of how closely was looked; the rest of an environment is versions.
_NOT_A_VERSION = ("platform", "cpu_count", "isolation", "sawbones", "commit")
# How an optimizer computes, not what; the rate is compared step by step.
_NOT_A_SETTING = ("lr", "initial_lr", "foreach", "fused", "differentiable", "capturable")
_LOOP = (
    "zero_grad",
    "scale",
    "backward",
    "unscale",
    "clip",
    "scaler_step",
    "step",
    "scaler_update",
    "schedule",
    "manual_step",
)
_OF_LOSS = ("fn", "reduction", "ignore_index", "smoothing")
_OF_LOADER = ("batch_size", "size", "drop_last", "sampler", "dataset")
MOST = 10  # settings and events; behind so many the first ones are what matters
_RATE_ROUNDING = 1e-9
LINES_SHOWN = 4  # of the changes of a file


def differences(good: Run, run: Run) -> tuple[Difference, ...]:
    found: list[Difference] = []
    for part in (
        _versions,
        _changes,
        _arguments,
        _optimizers,
        _rates,
        _model,
        _loss,
        _loaders,
        _events,
    ):
        found += part(good, run)
    return (*found[:MOST], *_data_and_losses(good, run))


def _versions(good: Run, run: Run) -> Iterator[Difference]:
    before, now = good.environment, run.environment
    for name in sorted({*before, *now} - set(_NOT_A_VERSION)):
        # A package that one of the runs had not imported when it was asked is no difference.
        if name in before and name in now and before[name] != now[name]:
            yield _difference("version", "", name, before[name], now[name])
    if before.get("commit") and now.get("commit") and before["commit"] != now["commit"]:
        yield _difference("commit", "", "commit", before["commit"][:12], now["commit"][:12])


def _changes(good: Run, run: Run) -> Iterator[Difference]:
    """Lines of the work tree that were not committed, and that one of the runs alone had."""
    before, now = (changed_lines(uncommitted(r.folder)) for r in (good, run))
    for name in sorted({*before, *now}):
        old, new = (list(side.get(name, ())) for side in (before, now))
        lines = [line for line in new if line not in old]
        gone = [line for line in old if line not in new]
        if lines or gone:
            shown = "; ".join(shown_line(line) for line in lines[:LINES_SHOWN]) or "as committed"
            more = f" and {len(lines) - LINES_SHOWN} more" if len(lines) > LINES_SHOWN else ""
            text = f"uncommitted change of {name}: {shown}{more}"
            if gone:
                text += f"; the good run had {shown_line(gone[0])}"
            yield Difference("changes", "", text)


def _arguments(good: Run, run: Run) -> Iterator[Difference]:
    if good.argv != run.argv:
        yield _difference("arguments", "", "arguments", " ".join(good.argv), " ".join(run.argv))


def _optimizers(good: Run, run: Run) -> Iterator[Difference]:
    if len(good.optimizers) != len(run.optimizers):
        counts = (len(good.optimizers), len(run.optimizers))
        yield _difference("setting", "optimizer", "number of optimizers", *counts)
    for before, now in zip(good.optimizers, run.optimizers, strict=False):
        if before.cls != now.cls:
            yield _difference("setting", "optimizer", "optimizer", before.cls, now.cls, now.site)
            continue
        for number, (a, b) in enumerate(zip(before.groups, now.groups, strict=False)):
            for name in sorted({*a, *b} - set(_NOT_A_SETTING)):
                if not _same(a.get(name), b.get(name)):
                    of = f"{now.cls} {name}{_group(now, number)}"
                    values = (a.get(name), b.get(name))
                    yield _difference("setting", "optimizer", of, *values, now.site)


def _group(optimizer: Optimizer, number: int) -> str:
    return f" of group {number}" if len(optimizer.groups) > 1 else ""


def _rates(good: Run, run: Run) -> Iterator[Difference]:
    """The learning rate as it was at each step, whatever set it."""
    steps = min(good.num_steps, run.num_steps)
    if not steps or "lr" not in good.steps or "lr" not in run.steps:
        return
    before, now = good.steps["lr"][:steps], run.steps["lr"][:steps]
    bad = np.flatnonzero(~np.isclose(before, now, rtol=_RATE_ROUNDING, atol=0.0, equal_nan=True))
    if len(bad):
        at = int(bad[0])
        site = run.optimizers[0].site if run.optimizers else None
        values = (float(before[at]), float(now[at]))
        yield _difference("setting", "optimizer", "learning rate", *values, site, at)


def _model(good: Run, run: Run) -> Iterator[Difference]:
    sizes = [sum(t.numel for t in r.tensors if t.in_model) for r in (good, run)]
    if sizes[0] != sizes[1]:
        yield _difference("setting", "model", "number of parameters", sizes[0], sizes[1])
    before, now = ({m.path: m for m in r.modules} for r in (good, run))
    for path in [*before, *(p for p in now if p not in before)]:
        a, b = before.get(path), now.get(path)
        if a is None or b is None or a.cls != b.cls:
            values = (a.cls if a else None, b.cls if b else None)
            yield _difference("setting", "model", f"module {path or 'model'}", *values)
            return
        for name in sorted({*a.settings, *b.settings}):
            if not _same(a.settings.get(name), b.settings.get(name)):
                values = (a.settings.get(name), b.settings.get(name))
                of = f"{name} of {path or a.cls} ({a.cls})"
                yield _difference("setting", "model", of, *values, b.built)
    frozen = [{t.name: t.requires_grad for t in r.tensors} for r in (good, run)]
    for name in frozen[0].keys() & frozen[1].keys():
        if frozen[0][name] != frozen[1][name]:
            of = f"requires_grad of {name}"
            yield _difference("setting", "model", of, frozen[0][name], frozen[1][name])
            return


def _loss(good: Run, run: Run) -> Iterator[Difference]:
    first = [next((e for e in r.of_kind("loss") if e.data.get("grad")), None) for r in (good, run)]
    if first[0] is None or first[1] is None:
        return
    for name in _OF_LOSS:
        a, b = first[0].data.get(name), first[1].data.get(name)
        if not _same(a, b):
            yield _difference("setting", "loss", f"{name} of the loss", a, b, first[1].site)


def _loaders(good: Run, run: Run) -> Iterator[Difference]:
    before, now = (r.loaders for r in (good, run))
    for a, b in zip(before, now, strict=False):
        for name in _OF_LOADER:
            was, now_is = getattr(a, name), getattr(b, name)
            if not _same(was, now_is):
                of = f"{name} of loader {a.index}"
                yield _difference("setting", "data", of, was, now_is, b.site)


def _events(good: Run, run: Run) -> Iterator[Difference]:
    """The first step of which both recordings hold everything and which went another way."""
    before, now = _by_step(good), _by_step(run)
    for step in sorted(before.keys() & now.keys()):
        a, b = (list(map(_told, events[step])) for events in (before, now))
        if a != b:
            at = next(
                (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
                min(len(a), len(b)),
            )
            site = now[step][min(at, len(b) - 1)].site
            values = (", ".join(a), ", ".join(b))
            yield _difference("event", "loop", "order of events", *values, site, step)
            return


def _by_step(run: Run) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for event in run.of_kind(*_LOOP):
        found.setdefault(event.step, []).append(event)
    last = max(found, default=0)  # may be cut off in the middle
    whole = {"backward", "step"}
    return {s: es for s, es in found.items() if s < last and whole <= {e.kind for e in es}}


def _told(event: Event) -> str:
    if event.kind == "clip":
        return f"clip to {event.data.get('max_norm')}"
    return event.kind


def _data_and_losses(good: Run, run: Run) -> Iterator[Difference]:
    first = compare(run, good).differs
    if first is not None and first.what.startswith("batch"):
        order = first.what == "batch_order"
        of = "order of the samples" if order else "values of the samples"
        text = f"{of}: another from batch {first.index} on"
        yield Difference("data", "data", text, first.step, first.site)
    # A difference in the batches ends the comparison above; the losses are told as well.
    losses = compare(_losses_alone(run), _losses_alone(good)).differs
    if losses is not None and losses.what == "loss":
        values = (losses.second, losses.first)
        site = next((e.site for e in run.of_kind("backward") if e.step == losses.step), None)
        yield _difference("loss", "", "loss", *values, site, losses.step)


def _losses_alone(run: Run) -> Run:
    return Run(run.script, run.argv, run.folder, {}, run.ending, steps=run.steps)


def _difference(
    what: str,
    layer: str,
    of: str,
    good: Any,
    now: Any,
    site: Site | None = None,
    step: int | None = None,
) -> Difference:
    since = f" from step {step} on" if step else ""
    text = f"{of}: {_shown(now)}{since}, in the good run {_shown(good)}"
    return Difference(what, layer, text, step, site)


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _same(a: Any, b: Any) -> bool:
    """As JSON holds them: a recording gives lists back for tuples."""
    return json.dumps(a, sort_keys=True, default=str) == json.dumps(b, sort_keys=True, default=str)


def first_loss(found: Sequence[Difference]) -> Difference | None:
    return next((d for d in found if d.what == "loss"), None)
