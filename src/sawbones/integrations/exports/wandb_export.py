"""W&B: an offline run, to look at here or to send by `wandb sync`."""

from __future__ import annotations

from pathlib import Path

from sawbones.integrations.exports import missing, rows
from sawbones.schema import Report, Run


def write(run: Run, report: Report, out: Path) -> Path:
    try:
        import wandb

        from sawbones.integrations.trackers.wandb_findings import put, quiet
    except ImportError:
        raise missing("wandb") from None
    out.mkdir(parents=True, exist_ok=True)
    name = Path(run.script).stem
    tracked = wandb.init(
        mode="offline", dir=str(out), project="sawbones", name=name, settings=quiet()
    )
    for step, values in rows(run):
        tracked.log(values, step=step)
    put(tracked, report)
    tracked.finish()
    wandb.teardown()  # W&B's own process writes the file, and may be behind
    return next(iter(sorted(out.glob("wandb/offline-run-*"))), out)
