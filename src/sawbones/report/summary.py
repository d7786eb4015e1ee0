"""The few lines after `sawbones run`, and `sawbones show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sawbones.masking import masked_text, shown_line
from sawbones.schema import Run, Symptom

MOST_DEPTH = 40


def run_summary(run: Run, symptoms: Sequence[Symptom] = ()) -> str:
    steps = run.steps
    lines = [
        (
            f"sawbones: {shown_line(run.script)}  {run.num_steps} steps in {run.seconds:.1f} "
            f"s, {_ending(run)}"
        )
    ]
    if run.num_steps:
        loss = steps["loss"]
        lines.append(f"  loss       {_span(loss)}{_nonfinite(loss)}")
        lines.append(f"  grad norm  {_span(steps['grad_norm'])}{_nonfinite(steps['grad_norm'])}")
        lines.append(f"  lr         {_span(steps['lr'])}")
        step_ms, watch = steps["step_ms"][1:], steps["watch_ms"][1:]
        shallow = steps["deep"][1:] == 0
        if shallow.any():
            share = np.nanmedian(watch[shallow] / np.maximum(step_ms[shallow], 1e-9))
            wait = np.nanmedian(steps["data_wait_ms"])
            lines.append(
                f"  step       {np.nanmedian(step_ms[shallow]):.2f} ms median, waiting "
                f"for data {wait:.2f} ms; "
                f"watching {np.nanmedian(watch[shallow]) * 1e3:.0f} us ({share:.1%})"
            )
        skipped = int(np.nansum(steps["skipped"]))
        if skipped:
            lines.append(
                f"  skipped    {skipped} of {run.num_steps} steps (Inf found by the scaler)"
            )
    lines += [f"  {'symptom' if s.cls == 'ill' else 'notable':9}  {s.text}" for s in symptoms]
    lines += failure_chain(run)
    trainable = [t for t in run.tensors if t.requires_grad and t.in_model]
    if trainable:
        lines.append(
            f"  model      {sum(t.numel for t in trainable):,} trainable values in "
            f"{len(trainable)} tensors"
        )
    masked = masked_text(run.facts.get("masked", {}))
    if masked:
        lines.append(f"  masked     {shown_line(masked)}")
    lines.append(f"  recorded   {run.folder}   (sawbones diagnose {run.folder})")
    return "\n".join(lines)


def _span(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    if not len(known):
        return "none finite" if len(values) else "none"
    return f"{known[0]:.4g} -> {known[-1]:.4g}  (min {known.min():.4g}, max {known.max():.4g})"


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
    return f"{run.folder}  {run.num_steps} steps  {run.seconds:.1f} s  {loss}  {_ending(run)}{told}"


def _named(symptom: Symptom) -> str:
    """With its step, where it began at one."""
    return symptom.symptom + (f" from step {symptom.steps[0]}" if len(symptom.steps) == 1 else "")


def failure_chain(run: Run) -> list[str]:
    """The modules up to the operator that failed, each with what went in and what came out."""
    e = run.ending
    if e.kind != "exception" or not (e.modules or e.failing):
        return []
    first = (e.message or "").split("\n")[0][:160]
    lines = [f"  {shown_line(f'{e.exception}: {first}')}"]
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
        lines.append(
            "    "
            + shown_line(
                f"operator {e.failing.get('op')} at {site.get('file')}:{site.get('line')}: {shapes}"
            )
        )
    return lines


def _shapes(values: Any) -> str:
    listed = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in values or ())
    return shown_line(listed) or "()"
