"""Weights for the loss, out of how often each class was seen."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, set_keyword
from sawbones.fixing.expressions import constructor
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import called_name
from sawbones.schema.samples import Samples
from sawbones.stats.loss_calls import carrying

BY_CLASS = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss")
BINARY = ("binary_cross_entropy_with_logits", "BCEWithLogitsLoss")
COST = "rare classes are found more often, and frequent ones less"


def fix(case: Case) -> Iterator[Change]:
    sites = [seen.call.site for seen in carrying(case.run)]
    for site in dict.fromkeys(s for s in sites if s is not None):
        source = case.source(site)
        for call in source.calls_at(site.line) if source is not None else []:
            made = constructor(source, call) if source is not None else None
            for found in filter(None, (call, made)):
                weighed = _weighed(case, found)
                if source is None or weighed is None or keyword_of(found, weighed[0]) is not None:
                    continue
                tensor, imports = spelled(source, "torch.tensor")
                edit = set_keyword(source, found, weighed[0], f"{tensor}({weighed[1]})")
                yield Change(
                    "Weigh each class by how rarely it was seen.",
                    (*imports, edit),
                    unsafe="" if case.shown_by_trial else COST,
                )
                return


def _weighed(case: Case, loss: ast.Call) -> tuple[str, str] | None:
    """(argument of the loss, its value): rows over classes times rows of the class; of two classes
    the negatives over the positives.
    """
    counts = _counts(case)
    if called_name(loss) in BINARY and counts.get(0) and counts.get(1):
        return "pos_weight", f"{counts[0] / counts[1]:.3g}"
    num = max((s.facts.num_classes or 0 for s in carrying(case.run)), default=0)
    seen = [counts.get(k, 0) for k in range(num)]
    if called_name(loss) not in BY_CLASS or not seen or not all(seen):
        return None
    return "weight", f"[{', '.join(f'{sum(seen) / (num * n):.3g}' for n in seen)}]"


def _counts(case: Case) -> Counter[int]:
    samples = case.run.samples or Samples()
    counts: Counter[int] = Counter()
    for call in samples.labels:
        counts.update(call)
    if not counts:
        counts.update({k: row.wanted for k, row in samples.predictions.classes.items()})
    return counts
