"""TensorBoard: findings as text, and a marker at each step of their evidence."""

from __future__ import annotations

from typing import Any

import tensorboard  # noqa: F401  torch's writer needs it, and names another package where it is missing

from sawbones.integrations.trackers import told
from sawbones.schema import Report

DEFAULT_FOLDER = "runs/sawbones"
MOST_MARKERS = 200  # of one finding


def tell(report: Report, place: str) -> str:
    from torch.utils.tensorboard import SummaryWriter

    folder = place or DEFAULT_FOLDER
    with SummaryWriter(folder) as writer:
        put(writer, report)
    return f"{folder} (tensorboard --logdir {folder})"


def put(writer: Any, report: Report) -> None:
    for name, text in [("verdict", report.verdict), *told(report)]:
        writer.add_text(f"sawbones/{name}", text)
    for finding in report.findings:
        steps = sorted({step for e in finding.evidence for step in e.steps if step >= 0})
        for step in steps[:MOST_MARKERS]:
            writer.add_scalar(f"sawbones/{finding.fault}", 1.0, step)
