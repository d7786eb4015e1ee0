"""The weights turned round: rare classes weigh more."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.expressions import constructor, in_brackets
from sawbones.fixing.numbers import literal, short
from sawbones.fixing.recipes import Case, Change

HALF = 0.5
ARGUMENTS = ("weight", "pos_weight")


def fix(case: Case) -> Iterator[Change]:
    for source, call in case.calls():
        for made in filter(None, (call, constructor(source, call))):
            given = keyword_of(made, "label_smoothing")
            smooth = literal(given) if given is not None else None
            if given is not None and smooth is not None and smooth > HALF:
                text = short(1 - smooth)
                yield Change(
                    f"Smooth the labels by {text}: as much was left of them.",
                    (replace(source, given, text),),
                )
            for name in ARGUMENTS:
                given = keyword_of(made, name)
                if given is not None:
                    text = f"1 / {in_brackets(source, given)}"
                    yield Change(
                        f"Turn the weights round: {text}.", (replace(source, given, text),)
                    )
                    return
