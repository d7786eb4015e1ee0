"""Keys without the prefix that a wrapper has put in front of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import calls_near, in_brackets
from sawbones.fixing.recipes import Case, Change

PREFIX = re.compile(r"begins with '([\w.]+)'|take '([\w.]+)' off")


def fix(case: Case) -> Iterator[Change]:
    told = f"{case.finding.title} {case.finding.fix.summary if case.finding.fix else ''}"
    found = PREFIX.search(told)
    if found is None:
        return
    prefix = found[1] or found[2]
    for source, call in calls_near(case, "load_state_dict"):
        if not call.args or isinstance(call.args[0], ast.Starred):
            continue
        given = call.args[0]
        items = f"{in_brackets(source, given)}.items()"
        text = f'{{k.removeprefix("{prefix}"): v for k, v in {items}}}'
        yield Change(f"Take {prefix!r} off the keys.", (replace(source, given, text),))
        return
