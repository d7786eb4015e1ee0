"""The device that everything else lies on, where the value is made, else where it is used."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.crashes import rewritten_value, written_change
from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.recipes import Case, Change
from sawbones.stats.crashes import refusal


def fix(case: Case) -> Iterator[Change]:
    yield from written_change(case)
    told = case.finding.explanation
    advice = case.finding.fix.summary if case.finding.fix is not None else ""
    device = advice.rpartition(".to(")[2].partition(")")[0]
    if told is None or not device:
        return
    for source, site in list(case.places())[:1]:
        for call in source.calls_at(site.line):
            given = keyword_of(call, "device")
            if given is not None:
                yield Change(f"Make it on {device}.", (replace(source, given, device),))
    died = refusal(case.run) if case.run.ending.crash is not None else None
    astray = told.got.rpartition(" on ")[0]
    for name in (g.name for g in died.given if g.name == astray) if died is not None else ():
        yield from rewritten_value(case, name, lambda text: f"{text}.to({device})", "Move it: {}.")
