"""A copy of the weights, made when they are kept."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import called_name


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "state_dict"):
        parent = source.parents[call]
        if getattr(parent, "func", None) is not None and called_name(parent) == "deepcopy":  # type: ignore[arg-type]
            continue
        copy, imports = spelled(source, "copy.deepcopy")
        text = f"{copy}({source.text_of(call)})"
        yield Change(f"Keep a copy: {text}.", (*imports, replace(source, call, text)))
        return
