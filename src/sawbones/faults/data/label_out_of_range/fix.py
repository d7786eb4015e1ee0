"""Labels that count from 1 become labels that count from 0; a mark for "no label" is ignored."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace, set_keyword
from sawbones.fixing.expressions import constructor, in_brackets
from sawbones.fixing.recipes import Case, Change, Decide
from sawbones.fixing.source import Source
from sawbones.stats.loss_calls import carrying


def fix(case: Case) -> Iterator[Change | Decide]:
    refused = next((e for e in case.finding.evidence if e.value is not None), None)
    counts_from_one = any("from one" in e.text for e in case.finding.evidence)
    counts_from_one |= "count from 1" in case.finding.title
    sites = [case.run.ending.site, *(s.call.site for s in carrying(case.run))]
    for site in dict.fromkeys(s for s in sites if s is not None):
        source = case.source(site)
        for call in source.calls_at(site.line) if source is not None else []:
            target = keyword_of(call, "target", 1)
            if source is None or target is None or len(call.args) + len(call.keywords) < 2:
                continue
            if counts_from_one:
                text = f"{in_brackets(source, target)} - 1"
                yield Change(
                    f"Let the labels begin at 0: {text}.", (replace(source, target, text),)
                )
                return
            if refused is not None and _is_mark(case):
                yield from _ignored(source, call, int(refused.value or 0))
                return
    yield Decide(
        "Decide what the label means. If it is one class more, give the head one score more (the "
        "new class starts untrained); if it is a mistake in the data, drop or correct those rows "
        "(the others stay as they are)."
    )


def _is_mark(case: Case) -> bool:
    """Far outside of the classes: below 0, or more than one past the last."""
    found = re.search(r"Label (-?\d+) where the loss accepts \[0, (\d+)\]", case.finding.title)
    return found is not None and not 0 <= int(found[1]) <= int(found[2]) + 2


def _ignored(source: Source, call: ast.Call, value: int) -> Iterator[Change]:
    made = constructor(source, call) or call
    yield Change(
        f"Leave the mark out of the loss: ignore_index={value}.",
        (set_keyword(source, made, "ignore_index", str(value)),),
        unsafe=f"only you know that {value} stands for no label",
    )
