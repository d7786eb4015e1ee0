"""The few lines after `sawbones run`, and `sawbones show`."""

from __future__ import annotations

import numpy as np

from sawbones.schema import Run


def run_summary(run: Run) -> str:
    steps = run.steps
    lines = [f"sawbones: {run.script}  {run.num_steps} steps in {run.seconds:.1f} s, {_ending(run)}"]
    if run.num_steps:
        loss = steps["loss"]
        lines.append(f"  loss       {_span(loss)}{_nonfinite(loss)}")
        lines.append(f"  grad norm  {_span(steps['grad_norm'])}{_nonfinite(steps['grad_norm'])}")
        lines.append(f"  lr         {_span(steps['lr'])}")
        step_ms, watch = steps["step_ms"][1:], steps["watch_ms"][1:]
        shallow = steps["deep"][1:] == 0
        if shallow.any():
            share = np.nanmedian(watch[shallow] / np.maximum(step_ms[shallow], 1e-9))
            lines.append(
                f"  step       {np.nanmedian(step_ms[shallow]):.2f} ms median, waiting for data {np.nanmedian(steps['data_wait_ms']):.2f} ms; "
                f"watching {np.nanmedian(watch[shallow]) * 1e3:.0f} us ({share:.1%})"
            )
        skipped = int(np.nansum(steps["skipped"]))
        if skipped:
            lines.append(f"  skipped    {skipped} of {run.num_steps} steps (Inf found by the scaler)")
    trainable = [t for t in run.tensors if t.requires_grad and t.in_model]
    if trainable:
        lines.append(f"  model      {sum(t.numel for t in trainable):,} trainable values in {len(trainable)} tensors")
    lines.append(f"  recorded   {run.folder}   (sawbones diagnose {run.folder})")
    return "\n".join(lines)


def _span(values: np.ndarray) -> str:  # type: ignore[type-arg]
    known = values[np.isfinite(values)]
    if not len(known):
        return "none finite" if len(values) else "none"
    return f"{known[0]:.4g} -> {known[-1]:.4g}  (min {known.min():.4g}, max {known.max():.4g})"


def _nonfinite(values: np.ndarray) -> str:  # type: ignore[type-arg]
    bad = np.flatnonzero(~np.isfinite(values))
    return f"  NOT FINITE at {len(bad)} steps, first at step {bad[0]}" if len(bad) else ""


def _ending(run: Run) -> str:
    e = run.ending
    if e.kind == "exception":
        return f"crashed: {e.exception} at {e.site}"
    if e.kind == "exit":
        return f"exited with status {e.exit_code}"
    return {"finished": "finished", "killed": "still running or killed", "budget": "stopped at the budget"}.get(
        e.kind, e.kind
    )


def one_line(run: Run) -> str:
    known = run.losses[np.isfinite(run.losses)] if run.num_steps else np.zeros(0)
    loss = f"loss {known[0]:.4g} -> {known[-1]:.4g}" if len(known) else "no loss"
    return f"{run.folder}  {run.num_steps} steps  {run.seconds:.1f} s  {loss}  {_ending(run)}"
