"""assert_free_of: one fault of the catalogue, by its check."""

from __future__ import annotations

from sawbones import faults
from sawbones.schema import Run
from sawbones.testing.wording import steps_taken


def assert_free_of(run: Run, fault: str, suspected: bool = False) -> None:
    """The check of this fault reads the run and has nothing to say; a mere suspicion counts only
    with `suspected`.
    """
    reading = faults.read(run, only=fault)
    for finding in reading.findings:
        if suspected or finding.status != "suspected":
            told = "".join(f"\n  {e.text}" for e in finding.evidence)
            places = "".join(f"\n  at {site}: {site.code}" for site in finding.where[:3])
            raise AssertionError(f"{fault}: {finding.title}{told}{places}")
    if not any("crash" in check.needs for check in faults.all_checks() if check.fault == fault):
        steps_taken(run)
