"""The moments of the optimizer as they are by default."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, remove_keyword
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for optimizer in case.run.optimizers:
        made = case.made_optimizer(optimizer.index)
        if made is None or optimizer.site not in case.finding.where:
            continue
        source, call = made
        given = [
            name for name in ("betas", "eps", "momentum") if keyword_of(call, name) is not None
        ]
        for name in given:
            yield Change(
                f"Leave {name} at its default.",
                (remove_keyword(source, call, name),),
                unsafe="" if case.shown_by_trial else f"{name} may have been chosen on purpose",
            )
