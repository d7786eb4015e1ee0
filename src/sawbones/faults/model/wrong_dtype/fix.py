"""The dtype that the operation takes, where the value is made, else where it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sawbones.fixing.crashes import rewritten_value
from sawbones.fixing.recipes import Case, Change
from sawbones.stats.crashes import refusal

METHODS = {
    "float32": "float()",
    "float64": "double()",
    "float16": "half()",
    "bfloat16": "bfloat16()",
    "int64": "long()",
}


def fix(case: Case) -> Iterator[Change]:
    told = case.finding.explanation
    call = refusal(case.run) if case.run.ending.crash is not None else None
    if told is None or call is None or call.handed_on:
        return
    wanted, has = told.expected.partition(":")[0], told.got.partition(" ")[0]
    for given in call.given:
        if given.bound.dtype != has or wanted not in METHODS:
            continue
        ending = f"astype('{wanted}')" if given.bound.kind == "array" else METHODS[wanted]
        if given.bound.kind in ("tensor", "array"):
            yield from rewritten_value(case, given.name, _calling(ending), "Convert it: {}.")
            return


def _calling(ending: str) -> Callable[[str], str]:
    return lambda text: f"{text}.{ending}"
