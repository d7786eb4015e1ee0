"""Tell the loss which target is padding."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.expressions import constructor
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.stats.loss_calls import reaching

LOSSES = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss")


def fix(case: Case) -> Iterator[Change]:
    pads = padding_ids(case)
    seen: set[tuple[str, int, int]] = set()
    for source, call in _losses(case):
        key = (source.file, call.lineno, call.col_offset)
        if key in seen:
            continue
        seen.add(key)
        for pad in pads:
            yield Change(
                f"Leave padding out of the loss: ignore_index={pad}.",
                (set_keyword(source, call, "ignore_index", str(pad)),),
            )


def _losses(case: Case) -> Iterator[tuple[Source, ast.Call]]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if not isinstance(node, ast.Call):
                continue
            for call in (node, constructor(source, node)):
                if call is not None and called_name(call) in LOSSES:
                    yield source, call


def padding_ids(case: Case) -> list[int]:
    """Targets that stand at padding, as the losses of deep steps saw them, most frequent first."""
    found: Counter[int] = Counter()
    for seen in reaching(case.run):
        if padding := seen.facts.padding:
            found[padding.pad_id if padding.same_vocabulary else padding.target] += 1
    return [value for value, _ in found.most_common(2)]
