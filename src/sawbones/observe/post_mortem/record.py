"""The traceback of an exception that ended the script, as a record."""

from __future__ import annotations

import ast
import os
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.observe.post_mortem.describing import Describer, learn_secret
from sawbones.observe.post_mortem.expressions import expression_of
from sawbones.observe.post_mortem.layers import unkept_layers
from sawbones.observe.post_mortem.sources import Source, Sources, dotted, names_in
from sawbones.observe.post_mortem.tracing import Tracer
from sawbones.observe.signals.source_files import user_files
from sawbones.observe.sites import is_own_file, is_user_file
from sawbones.schema.crash import (
    Assignment,
    Bound,
    Construction,
    Crash,
    CrashFrame,
    Link,
)
from sawbones.schema.site import Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

MOST_FRAMES = 40
FIRST_FRAMES = 8
MOST_VALUES = 40
MOST_NAMES = 24
MOST_LINKS = 4
MOST_NODES = 20_000
MOST_MESSAGE = 2000
MOST_FILES = 20
_REMOTE = re.compile(r'^ *File "([^"\n]+)", line (\d+), in (\S+)', re.MULTILINE)


def crash_record(recorder: Recorder, error: BaseException) -> Crash:
    return _Reader(recorder).read(error)


class _Reader:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._sources = Sources(recorder.sites.shown)
        self._describe = Describer(
            _module_names(recorder.census.roots()),
            self._construction,
            self._lines,
            lambda module: unkept_layers(module, self._sources),
        )

    def read(self, error: BaseException) -> Crash:
        found = list(_frames(error))
        if len(found) > MOST_FRAMES:  # of a recursion: where it began and where it ended
            found = [*found[:FIRST_FRAMES], *found[FIRST_FRAMES - MOST_FRAMES :]]
        inner = max((i for i, tb in enumerate(found) if _is_user(tb)), default=-1)
        frames = tuple(self._frame(tb, _is_user(tb), i > inner) for i, tb in enumerate(found))
        if isinstance(error, KeyError) and inner >= 0:
            files = list(self._user_sources(found))
            frames = (*frames[:inner], _with_literal(frames[inner], files), *frames[inner + 1 :])
        latest = self._recorder.batches.latest
        message = str(error)[:MOST_MESSAGE]
        backward = any(f.home.startswith("torch.autograd") for f in frames[inner + 1 :])
        return Crash(
            type(error).__name__,
            tuple(c.__name__ for c in type(error).__mro__ if c is not object),
            message,
            frames,
            tuple(self._chain(error)),
            self._describe(latest) if latest is not None else None,
            self._recorder.step,
            self._recorder.phase,
            tuple(c for s in self._user_sources(found) for c in s.changes()) if backward else (),
            _carriers(found[inner]) if backward and inner >= 0 else (),
            tuple(self._remote(message)),
            frozen=tuple(s for f in self._user_sources(found) for s in f.freezing())
            if backward
            else (),
            traces=Tracer(
                found, self._sources, lambda: self._user_sources(found), self._describe
            ).traces(),
        )

    def _frame(self, tb: types.TracebackType, user: bool, after: bool) -> CrashFrame:
        code, line = tb.tb_frame.f_code, tb.tb_lineno
        source = self._sources(code.co_filename)
        site = source.site(line, code.co_name)
        home = str(tb.tb_frame.f_globals.get("__name__", ""))
        if not user:
            values = self._values(tb.tb_frame, ()) if after else {}
            return CrashFrame(site, False, home, values)
        for name, value in tb.tb_frame.f_locals.items():
            learn_secret(name, value)  # before any of them is described
        expression = expression_of(tb, source, self._describe)
        assignments = _relevant(source, line, code.co_name)
        wanted = tuple(
            dict.fromkeys(name for a in assignments for name in (a.name, *a.reads, *a.calls))
        )
        values = self._values(tb.tb_frame, wanted)
        loop = source.loop_around(line, code.co_name)
        dropped = tuple(source.dropped(line, code.co_name))
        return CrashFrame(site, True, home, values, expression, assignments, loop, dropped)

    def _values(self, frame: types.FrameType, first: tuple[str, ...]) -> dict[str, Bound]:
        held = dict(frame.f_locals)
        for name in first:
            if name not in held and name in frame.f_globals:
                held[name] = frame.f_globals[name]
        names = [n for n in first if n in held] + [n for n in held if n not in first]
        found: dict[str, Bound] = {}
        for name in names:
            value = held[name]
            if name.startswith("__") or issubclass(type(value), types.ModuleType):
                continue
            if len(found) >= MOST_VALUES:
                break
            learn_secret(name, value)  # of the module's names as well
            described = self._describe(value)
            if name in first or described.kind not in ("class", "function"):
                found[name] = described
        return found

    def _chain(self, error: BaseException) -> Iterator[Link]:
        current: BaseException | None = error
        for _ in range(MOST_LINKS):
            if current is None:
                return
            relation = "cause" if current.__cause__ is not None else "context"
            hidden = current.__suppress_context__ and current.__cause__ is None
            current = current.__cause__ or (None if hidden else current.__context__)
            if current is not None:
                tb = next((t for t in reversed(list(_frames(current))) if _is_user(t)), None)
                site = None
                if tb is not None:
                    code = tb.tb_frame.f_code
                    site = self._sources(code.co_filename).site(tb.tb_lineno, code.co_name)
                yield Link(relation, type(current).__name__, str(current)[:200], site)

    def _remote(self, message: str) -> Iterator[Site]:
        """A worker process sends its traceback as text."""
        for file, line, function in _REMOTE.findall(message):
            if is_user_file(file) and os.path.isfile(file):
                yield self._sources(file).site(int(line), function)

    def _user_sources(self, found: list[types.TracebackType]) -> Iterator[Source]:
        """The user's files, those of the traceback first."""
        files = [t.tb_frame.f_code.co_filename for t in found if _is_user(t)]
        files = list(dict.fromkeys([*files, *self._near_files]))
        yield from (self._sources(file) for file in files[:MOST_FILES])

    @cached_property
    def _near_files(self) -> list[str]:
        return [file.path for file in user_files(self._recorder.sites, MOST_FILES)]

    def _lines(
        self, methods: Mapping[str, types.FunctionType], attributes: list[str]
    ) -> dict[str, Site]:
        """Where methods of a class begin, and where its constructor sets attributes."""
        found: dict[str, Site] = {}
        for name, method in methods.items():
            code = method.__code__
            if not is_user_file(code.co_filename):
                continue
            source = self._sources(code.co_filename)
            found[name] = source.site(code.co_firstlineno, name)
            last = source.ends(code.co_firstlineno, code.co_name)
            if last is not None:
                found[f"end of {name}"] = last
            squeezed = source.squeezes(code.co_firstlineno, name)
            if squeezed is not None:
                found.setdefault("squeeze", squeezed)
            for made in source.assignments(code.co_firstlineno, name) if attributes else ():
                attribute = made.name.removeprefix("self.")
                if made.name != attribute and attribute in attributes:
                    found.setdefault(attribute, made.site)
        return found

    def _construction(self, module: nn.Module, site: Site) -> Construction:
        source = self._sources.shown(site.file)
        name = type(module).__name__
        for call in source.calls_on(site.line) if source is not None else ():
            called = dotted(call.func).rpartition(".")[2]
            if source is None or called != name or not _fits(call, module):
                continue
            function = source.function_at(site.line)
            wanted = set(names_in(call))
            known = [a for a in source.assignments(site.line, function) if a.name in wanted]
            if function != "<module>":
                here = {a.name for a in known}
                top = source.assignments(0, "<module>")
                known += [a for a in top if a.name in wanted - here]
            return Construction(site, source.segment(call), tuple(known[:MOST_NAMES]))
        return Construction(site)


def _with_literal(frame: CrashFrame, files: list[Source]) -> CrashFrame:
    """The dictionary that was asked, with the line where it is written out."""
    asked = frame.expression
    owner = asked.operands[0] if asked is not None and asked.operands else None
    if asked is None or owner is None or owner.bound is None or owner.bound.kind != "mapping":
        return frame
    lines = [line for f in files if (line := f.literal(owner.bound.keys)) is not None]
    if len(lines) != 1:
        return frame
    known = replace(owner, bound=replace(owner.bound, lines={"written": lines[0]}))
    return replace(frame, expression=replace(asked, operands=(known, *asked.operands[1:])))


def _fits(call: ast.Call, module: nn.Module) -> bool:
    """Several layers of one class may stand on a line: numbers that are written out must be among
    the sizes of this one.
    """
    held = object.__getattribute__(module, "__dict__")
    sizes = [v for v in held.values() if type(v) in (int, float, tuple, bool)]
    flat = [x for v in sizes for x in (v if type(v) is tuple else (v,))]
    written = [a.value for a in call.args if isinstance(a, ast.Constant) and type(a.value) is int]
    return all(number in flat for number in written)


def _frames(error: BaseException) -> Iterator[types.TracebackType]:
    tb = error.__traceback__
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if not is_own_file(name) and not name.startswith("<frozen"):
            yield tb
        tb = tb.tb_next


def _is_user(tb: types.TracebackType) -> bool:
    return is_user_file(tb.tb_frame.f_code.co_filename)


def _relevant(source: Source, line: int, function: str) -> tuple[Assignment, ...]:
    """Where the names of a line, and the names that those come from, get their values."""
    known = source.assignments(line, function)
    if function != "<module>":
        own = {a.name for a in known}
        known += [a for a in source.assignments(0, "<module>") if a.name not in own]
    wanted = set()
    for node in ast.walk(source.tree):
        begin, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if isinstance(node, (ast.Name, ast.Attribute)) and begin <= line <= end:
            wanted |= {dotted(node), dotted(node).split(".")[0]}
    for _ in range(MOST_NAMES):
        more = {name for a in known if a.name in wanted for name in (*a.reads, *a.calls)}
        if more <= wanted or len(wanted) >= MOST_NAMES:
            break
        wanted |= more
    return tuple(a for a in known if a.name in wanted)[: 4 * MOST_NAMES]


def _module_names(roots: list[nn.Module]) -> Mapping[int, str]:
    """The path of every module below the models that ran."""
    found: dict[int, str] = {}

    def walk(module: nn.Module, path: str) -> None:
        if id(module) in found:
            return
        found[id(module)] = path
        held = object.__getattribute__(module, "__dict__").get("_modules") or {}
        for name, inner in held.items():
            if inner is not None:
                walk(inner, f"{path}.{name}" if path else name)

    for root in roots:
        walk(root, "")
    return found


def _carriers(tb: types.TracebackType) -> tuple[str, ...]:
    """Names that hold a value of the graph that backward was asked to go through."""
    held = tb.tb_frame.f_locals
    tensors = {name: list(_tensors(value)) for name, value in held.items()}
    nodes = {
        name: [t.grad_fn for t in found if t.grad_fn is not None]
        for name, found in tensors.items()
        if found and not name.startswith("_")
    }
    behind: dict[str, set[Any]] = {name: _graph(own) for name, own in nodes.items() if own}
    return tuple(
        name
        for name, own in nodes.items()
        if own and any(other != name and set(own) & graph for other, graph in behind.items())
    )


def _tensors(value: object, depth: int = 2) -> Iterator[torch.Tensor]:
    if issubclass(type(value), torch.Tensor):
        yield value  # type: ignore[misc]
    elif type(value) in (tuple, list) and depth:
        for item in list(value)[:8]:  # type: ignore[call-overload]
            yield from _tensors(item, depth - 1)


def _graph(nodes: list[Any]) -> set[Any]:
    seen: set[Any] = set()
    waiting = list(nodes)
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [next_node for next_node, _ in node.next_functions]
    return seen
