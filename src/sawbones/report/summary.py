"""The few lines after `sawbones run`, and `sawbones show`."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sawbones.masking import masked_text, shown_line
from sawbones.schema import Run, Symptom

MOST_DEPTH = 40
WIDTH = 80  # columns of a terminal
FELT_SHARE = 0.03  # of a step: watching that is worth an explanation
SHORT_STEP_MS = 20.0


def run_summary(run: Run, symptoms: Sequence[Symptom] = ()) -> str:
    steps = run.steps
    first = f"{run.num_steps:,} step{'s' * (run.num_steps != 1)} in {run.seconds:.1f} s"
    lines = [f"sawbones: {shown_line(run.script)}  {first}, {_ending(run)}"]
    if run.num_steps:
        loss = steps["loss"]
        lines.append(f"  loss       {_span(loss)}{_nonfinite(loss)}")
        lines.append(f"  grad norm  {_span(steps['grad_norm'])}{_nonfinite(steps['grad_norm'])}")
        lines.append(f"  lr         {_span(steps['lr'])}")
        lines += _step_time(steps)
        skipped = int(np.nansum(steps["skipped"]))
        if skipped:
            lines.append(
                f"  skipped    {skipped} of {run.num_steps} steps (Inf found by the scaler)"
            )
    for seen in symptoms:
        lines += labelled("symptom" if seen.cls == "ill" else "notable", seen.text)
    lines += failure_chain(run)
    trainable = [t for t in run.tensors if t.requires_grad and t.in_model]
    if trainable:
        lines.append(
            f"  model      {sum(t.numel for t in trainable):,} trainable values in "
            f"{len(trainable)} tensor{'s' * (len(trainable) != 1)}"
        )
    masked = masked_text(run.masked)
    if masked:
        lines += labelled("masked", shown_line(masked))
    folder = near(run.folder)
    lines += [f"  recorded   {folder}", f"  next       sawbones diagnose {folder}"]
    return "\n".join(lines)


def _step_time(steps: Mapping[str, Any]) -> list[str]:
    """The share is that of the two numbers beside it."""
    shallow = steps["deep"][1:] == 0
    if not shallow.any():
        return []
    step_ms, watch_ms = (
        float(np.nanmedian(steps[name][1:][shallow])) for name in ("step_ms", "watch_ms")
    )
    wait_ms = float(np.nanmedian(steps["data_wait_ms"]))
    share = watch_ms / max(step_ms, 1e-9)
    watching = f"{watch_ms * 1e3:.0f} us of it ({share:.1%})"
    if share > FELT_SHARE and step_ms < SHORT_STEP_MS:
        watching += ": much the same for every model, so short steps pay more"
    first = f"  step       {step_ms:.2f} ms median, waiting for data {wait_ms:.2f} ms"
    return [first, *labelled("watching", watching)]


def labelled(label: str, text: str) -> list[str]:
    """A line of the summary; what is longer than a terminal goes on under its beginning."""
    wrapped = textwrap.wrap(text, WIDTH - 13, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
    return [f"  {label:9}  {wrapped[0]}", *(f"{'':13}{line}" for line in wrapped[1:])]


def near(folder: str) -> str:
    """A path as the user would type it from here."""
    try:
        inside = os.path.relpath(folder)
    except ValueError:  # another drive
        return folder
    return inside if not inside.startswith("..") else folder


def _span(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    if not len(known):
        return "none finite" if len(values) else "none"
    if known.min() == known.max():
        return f"{known[0]:.4g} throughout"
    ends = f"{known[0]:.4g} -> {known[-1]:.4g}"
    return f"{ends}  (min {known.min():.4g}, max {known.max():.4g})" if len(known) > 2 else ends


def _nonfinite(values: np.ndarray) -> str:
    bad = np.flatnonzero(~np.isfinite(values))
    return f"  NOT FINITE at {len(bad)} steps, first at step {bad[0]}" if len(bad) else ""


def _ending(run: Run) -> str:
    e = run.ending
    if e.kind == "exception":
        return shown_line(f"crashed: {e.exception} at {e.site}")
    if e.kind == "exit":
        return f"exited with status {e.exit_code}"
    return {
        "finished": "finished",
        "killed": "still running or killed",
        "budget": "stopped at the budget",
    }.get(e.kind, shown_line(e.kind))


def one_line(run: Run, symptoms: Sequence[Symptom] = ()) -> str:
    known = run.losses[np.isfinite(run.losses)] if run.num_steps else np.zeros(0)
    loss = f"loss {known[0]:.4g} -> {known[-1]:.4g}" if len(known) else "no loss"
    ill = ", ".join(_named(symptom) for symptom in symptoms if symptom.cls == "ill")
    told = f"  ILL: {ill}" if ill else ""
    first = f"{near(run.folder)}  {_ending(run)}{told}"
    return f"{first}\n    {run.num_steps:,} steps  {run.seconds:.1f} s  {loss}"


def _named(symptom: Symptom) -> str:
    """With its step, where it began at one."""
    return symptom.symptom + (f" from step {symptom.steps[0]}" if len(symptom.steps) == 1 else "")


def failure_chain(run: Run) -> list[str]:
    """The modules up to the operator that failed, each with what went in and what came out."""
    e = run.ending
    if e.kind != "exception" or not (e.modules or e.failing):
        return []
    first = (e.message or "").split("\n")[0][:160]
    lines = _folded(f"  {shown_line(f'{e.exception}: {first}')}")
    for m in e.modules[-12:]:
        out = (
            _shapes(m.get("outputs"))
            if m.get("outputs")
            else "FAILED HERE"
            if m.get("failed")
            else "?"
        )
        lines.append(
            f"    {'  ' * min(int(m.get('depth', 0)), MOST_DEPTH)}"
            + shown_line(f"{m['path']} ({m['class']})")
            + f"  {_shapes(m.get('inputs'))} -> {out}"
        )
    if e.failing:
        shapes = ", ".join(
            (
                f"{'weight ' if i.get('is_parameter') else ''}{i['dtype']}{list(i['shape'])} "
                f"in [{i['min']:.4g}, {i['max']:.4g}]"
            )
            for i in e.failing.get("inputs", ())
            if i.get("min") is not None
        )
        site = e.failing.get("site") or {}
        told = f"operator {e.failing.get('op')} at {site.get('file')}:{site.get('line')}: {shapes}"
        lines += _folded(f"    {shown_line(told)}")
    return lines


def _folded(line: str) -> list[str]:
    """Longer than a terminal: it goes on further in."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _shapes(values: Any) -> str:
    listed = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in values or ())
    return shown_line(listed) or "()"
