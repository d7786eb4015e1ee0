"""Whose variables a frame shows."""

from __future__ import annotations

import sys
from typing import Any

from sawbones.observe.variables import variables_of

MODULE = """
seen = {}
rows = [{"a": 1}, {"a": 2}]
names = ["a"]
values = [
    [float(row[name]) for name in names]
    for row in rows
]
def inside():
    own = 3
    look(own)
class Made:
    also = 4
    listed = [number
              for number in range(3)]
inside()
"""


def test_a_module_shows_its_globals_a_function_its_locals_and_a_class_nothing():
    shown: dict[str, Any] = {}

    def look(_: int) -> None:
        shown.update(variables_of(sys._getframe(1)))

    names: dict[str, Any] = {"look": look}
    exec(compile(MODULE, "script.py", "exec"), names)
    assert shown == {"own": 3}


def test_comprehensions_keep_their_variables_while_every_line_is_looked_at():
    names: dict[str, Any] = {"look": lambda own: None}
    kinds = set()

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == "script.py":
            kinds.add((frame.f_code.co_name, len(variables_of(frame)) > 0))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(compile(MODULE, "script.py", "exec"), names)
    finally:
        sys.settrace(before)
    assert names["values"] == [[1.0], [2.0]]
    assert names["Made"].listed == [0, 1, 2]
    assert ("<module>", True) in kinds and ("Made", False) in kinds
