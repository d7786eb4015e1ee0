"""A recording from when it worked, beside the run at hand: the best null that there is."""

from __future__ import annotations

from dataclasses import replace

from sawbones import symptoms
from sawbones.evidence import context
from sawbones.schema import AgainstGood, Finding, Run
from sawbones.trials.good_run import differences


def against_good(good: Run, run: Run) -> AgainstGood:
    return AgainstGood(good.folder or good.script, differences(good, run))


def with_differences(finding: Finding, compared: AgainstGood | None) -> Finding:
    """What differs in the layer of a finding stands beside its evidence, and decides nothing."""
    if compared is None:
        return finding
    layer = finding.fault.split(".")[0]
    beside = tuple(
        context(f"not as in the good run: {d.text}", signal="good run", steps=(d.step or 0,))
        for d in compared.differences
        if d.layer == layer
    )
    return replace(finding, evidence=finding.evidence + beside)


def ill_itself(good: Run) -> tuple[str, ...]:
    """A good run that is ill is no null; the user should know."""
    ill = [s.text for s in symptoms.read(good).symptoms if s.cls == "ill"]
    return (f"the good run is ill itself: {'; '.join(ill)}",) if ill else ()
