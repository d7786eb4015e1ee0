"""fix: a diagnosis, and the patches of its findings tried on the script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sawbones.diagnosis import Diagnosis
from sawbones.fixing.verifying import Fixed, Say, Verifier
from sawbones.trials.bench import Bench, Patient


def fix_diagnosed(
    found: Diagnosis,
    patient: Patient,
    *,
    seconds: float,
    allow: tuple[str, ...] = (),
    say: Say = lambda text: None,
    progress: Callable[[Path], None] | None = None,
) -> Fixed:
    with Bench(patient, seconds, allow, partial=True) as bench:
        bench.baseline = found.run
        verifier = Verifier(bench, found.run, found.report, say, progress)
        return verifier.fix_all(patient.working_folder)
