"""Faults of the catalogue as assertions: the check of a fault reads the run and must find nothing."""

from __future__ import annotations

from sawbones import faults
from sawbones.schema import Run
from sawbones.testing.wording import broken, steps_taken


def assert_free_of(run: Run, fault: str, suspected: bool = False) -> None:
    """The check of this fault reads the run and has nothing to say; a mere suspicion counts only
    with `suspected`.
    """
    _free_of(run, fault, suspected)
    if not any("crash" in check.needs for check in faults.all_checks() if check.fault == fault):
        steps_taken(run)


def free_of(run: Run, *named: str, judged: str | None = None) -> None:
    """The run trained, and has none of these faults. `judged` is what one of the checks must have
    found to judge; without it a check that could not look is no failure.
    """
    steps_taken(run)
    looked = [_free_of(run, fault) for fault in named]
    if judged is not None and not any(looked):
        raise broken(
            f"nothing to read {judged} from in {len(run.deep)} traced steps of {run.script}",
            "something",
        )


def _free_of(run: Run, fault: str, suspected: bool = False) -> bool:
    """Whether the check could look."""
    reading = faults.read(run, only=fault)
    for finding in reading.findings:
        if suspected or finding.status != "suspected":
            told = "".join(f"\n  {e.text}" for e in finding.evidence)
            places = "".join(f"\n  at {site}: {site.code}" for site in finding.where[:3])
            raise AssertionError(f"{fault}: {finding.title}{told}{places}")
    return not reading.could_not_look
