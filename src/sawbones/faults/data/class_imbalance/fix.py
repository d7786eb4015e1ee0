"""Weights for the loss, out of how often each class was seen."""

from __future__ import annotations

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


def fix(case: Case) -> Iterator[Change]:
    weights = _weights(case)
    sites = [seen.call.site for seen in carrying(case.run)]
    for site in dict.fromkeys(s for s in sites if s is not None):
        source = case.source(site)
        for call in source.calls_at(site.line) if source is not None else []:
            made = constructor(source, call) if source is not None else None
            for found in filter(None, (call, made)):
                if source is None or called_name(found) not in BY_CLASS or not weights:
                    continue
                if keyword_of(found, "weight") is not None:
                    continue
                tensor, imports = spelled(source, "torch.tensor")
                text = f"{tensor}([{', '.join(f'{w:.3g}' for w in weights)}])"
                cost = "rare classes are found more often, and frequent ones less"
                yield Change(
                    "Weigh each class by how rarely it was seen.",
                    (*imports, set_keyword(source, found, "weight", text)),
                    unsafe="" if case.shown_by_trial else cost,
                )
                return


def _weights(case: Case) -> list[float]:
    """Rows over classes times rows of the class: 1 where all are equally frequent."""
    counts: Counter[int] = Counter()
    for call in (case.run.samples or Samples()).labels:
        counts.update(call)
    widths = {s.facts.num_classes or 0 for s in carrying(case.run)}
    num = max(widths, default=0)
    seen = [counts.get(k, 0) for k in range(num)]
    total = sum(seen)
    return [total / (num * n) for n in seen] if seen and all(seen) else []
