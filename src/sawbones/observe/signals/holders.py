"""Who keeps tensors with graphs of steps long past: the container, the name it goes by, and the
lines that fill it.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from sawbones.observe.signals.source_files import SourceFile, user_files
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.observe.variables import variables_of
from sawbones.schema import Site

_LEAST = 8  # tensors in one container
_FILLS = frozenset(
    {"append", "extend", "add", "appendleft", "insert", "update", "setdefault", "put"}
)
_KINDS = (list, deque, dict, set)


def filling_lines(sites: SiteFinder) -> list[Site]:
    """Lines that put something into the containers which hold most tensors with a graph."""
    frames = list(_user_frames())
    names = {name for container in _containers(frames) for name in _names_of(container, frames)}
    return list(islice((s for f in user_files(sites) for s in _fills(f, names, sites)), 3))


def _user_frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _containers(frames: list[Any]) -> list[Any]:
    tensors = [o for o in gc.get_objects() if _carries(o)]
    own = {id(tensors), id(frames)}
    counts: Counter[int] = Counter()
    by_id: dict[int, Any] = {}
    rows: list[Any] = []
    for holder in gc.get_referrers(*tensors) if tensors else ():
        if id(holder) in own or not isinstance(holder, (*_KINDS, tuple)):
            continue
        num = sum(_carries(v) for v in (holder.values() if isinstance(holder, dict) else holder))
        if num >= _LEAST:
            counts[id(holder)], by_id[id(holder)] = num, holder
        else:
            rows.append(holder)
    # rows of a few tensors each are kept in something larger
    for outer in gc.get_referrers(*rows) if rows else ():
        if outer is not rows and isinstance(outer, _KINDS) and len(outer) >= _LEAST:
            inside = {id(v) for v in (outer.values() if isinstance(outer, dict) else outer)}
            counts[id(outer)], by_id[id(outer)] = sum(id(r) in inside for r in rows), outer
    return [by_id[key] for key, num in counts.most_common(3) if num >= _LEAST]


def _carries(value: Any) -> bool:
    return type(value) is torch.Tensor and value.grad_fn is not None


def _names_of(container: Any, frames: list[Any]) -> set[str]:
    found = {
        name
        for frame in frames
        for name, value in [*variables_of(frame).items(), *frame.f_globals.items()]
        if value is container
    }
    for holder in gc.get_referrers(container):
        inside = holder if isinstance(holder, dict) else getattr(holder, "__dict__", None)
        if isinstance(inside, dict):
            found |= {
                name
                for name, value in list(inside.items())
                if value is container and isinstance(name, str)
            }
    return found


def _fills(file: SourceFile, names: set[str], sites: SiteFinder) -> Iterator[Site]:
    for node in ast.walk(file.tree):
        target: ast.AST | None = None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _FILLS
        ):
            target = node.func.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0].value
        while isinstance(target, ast.Subscript):
            target = target.value
        name = (
            target.attr
            if isinstance(target, ast.Attribute)
            else target.id
            if isinstance(target, ast.Name)
            else ""
        )
        if name in names and isinstance(node, (ast.expr, ast.stmt)):
            yield file.site(sites, node.lineno)
