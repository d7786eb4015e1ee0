"""The softmax along the dimension that its weights are summed over."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.expressions import calls_near, is_library_call
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import called_name

SOFTMAXES = ("softmax", "log_softmax", "Softmax", "LogSoftmax")


def fix(case: Case) -> Iterator[Change]:
    exact = [e for e in case.finding.evidence if e.kind == "exact" and e.expected is not None]
    if not exact or exact[0].expected == exact[0].value:
        return
    dim = int(exact[0].expected or 0)
    for source, call in calls_near(case, *SOFTMAXES):
        layer = called_name(call)[0].isupper()
        place = 0 if layer or not is_library_call(source, call) else 1
        edit = set_keyword(source, call, "dim", str(dim), place)
        yield Change(f"Take the softmax along dimension {dim}.", (edit,))
