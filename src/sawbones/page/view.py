"""Run -> what the page shows beside its curves, as plain JSON: findings, layers, data, ranks."""

from __future__ import annotations

import numpy as np

from sawbones.diagnosis import diagnose_run
from sawbones.masking import mask_all, shown_line
from sawbones.page.blocks import Block, gallery
from sawbones.page.data import accuracy, data
from sawbones.page.layers import layers
from sawbones.page.ranks import ranks
from sawbones.report import figures, wording
from sawbones.schema import Finding, Run
from sawbones.stats.evaluations import validation_curve
from sawbones.store import read_run
from sawbones.store.uncommitted import uncommitted

MOST_CHANGES = 400  # lines


def view(folder: str) -> tuple[Block, Run]:
    """What stands on the page beside the curves, and the run that it was read off."""
    run = read_run(folder)
    report = diagnose_run(run).report
    found = {
        "script": run.script,
        "command": " ".join(run.argv),
        "ending": run.ending.kind,
        "world_size": run.world_size,
        "environment": {str(k): str(v) for k, v in run.environment.items()},
        "changes": [shown_line(line) for line in uncommitted(folder).splitlines()[:MOST_CHANGES]],
        "verdict": report.verdict,
        "findings": [_finding(finding) for finding in report.findings],
        "symptoms": [
            {"text": wording.symptom(s), "steps": list(s.steps[:1]), "ill": s.cls == "ill"}
            for s in report.symptoms
        ],
        "bands": figures.evidence_bands(report.findings),
        "evaluation": _evaluation(run),
        "accuracy": accuracy(run),
        "logged": _logged(run),
        "layers": layers(run),
        "ranks": ranks(run),
    }
    masked: Block = mask_all(found)
    return {**masked, "data": data(run)}, run  # masked there: pixels are no text


def _finding(finding: Finding) -> Block:
    return {
        "fault": finding.fault,
        "status": finding.status,
        "title": finding.title,
        "where": str(finding.where[0]) if finding.where else "",
        "code": finding.where[0].code.strip() if finding.where else "",
        "evidence": [evidence.text for evidence in finding.evidence[:3]],
        "fix": finding.fix.summary if finding.fix is not None else "",
        "steps": sorted({step for e in finding.evidence for step in e.steps})[:1],
    }


def _logged(run: Run) -> list[Block]:
    """What the trainer logs itself: its own names and steps."""
    drawn = figures.logged(run)
    whom = f" by {run.framework.name}" if run.framework is not None else ""
    return [gallery(f"Logged{whom}", drawn, "")] if drawn else []


def _evaluation(run: Run) -> Block | None:
    steps, values, _ = validation_curve(run)
    known = [
        (int(s), figures.short(float(v)))
        for s, v in zip(steps, values, strict=True)
        if np.isfinite(v)
    ]
    if not known:
        return None
    return {"x": [step for step, _ in known], "y": [value for _, value in known]}
