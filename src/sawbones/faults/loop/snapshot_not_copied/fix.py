"""A copy of the weights, made when they are kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "state_dict"):
        parent = source.parents[call]
        if getattr(parent, "func", None) is not None and called_name(parent) == "deepcopy":  # type: ignore[arg-type]
            continue
        copy, imports = spelled(source, "copy.deepcopy")
        text = f"{copy}({source.text_of(call)})"
        yield Change(f"Keep a copy: {text}.", (*imports, replace(source, call, text)))
        return
    for source, value in _kept(case):
        copy, imports = spelled(source, "copy.deepcopy")
        text = source.text_of(value)
        if isinstance(value, ast.Call) and called_name(value) == "copy" and value.args:
            text = source.text_of(value.args[0])
        text = f"{copy}({text})"
        yield Change(f"Keep a copy: {text}.", (*imports, replace(source, value, text)))
        return


def _kept(case: Case) -> Iterator[tuple[Source, ast.expr]]:
    """What is assigned, alone, on the line that keeps weights in training; a shallow copy is not
    kept on the way.
    """
    keeping = {row.site for row in case.run.kept_weights}
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if site not in keeping or not isinstance(node, ast.Assign):
                continue
            if not isinstance(node.targets[0], ast.Tuple) and len(node.targets) == 1:
                yield source, node.value
