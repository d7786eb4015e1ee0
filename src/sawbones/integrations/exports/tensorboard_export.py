"""TensorBoard: scalars at their steps, findings and symptoms as text."""

from __future__ import annotations

from pathlib import Path

from sawbones.integrations.exports import missing, rows
from sawbones.schema import Report, Run


def write(run: Run, report: Report, out: Path) -> Path:
    try:
        from torch.utils.tensorboard import SummaryWriter

        from sawbones.integrations.trackers.tensorboard_findings import put
    except ImportError:
        raise missing("tensorboard") from None
    with SummaryWriter(str(out)) as writer:
        for step, values in rows(run):
            for name, value in values.items():
                writer.add_scalar(name, value, step)
        put(writer, report)
    return out
