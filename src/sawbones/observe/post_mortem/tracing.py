"""Which values of a crash are followed back to the lines that made them."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from torch import nn
from torch.utils.data import Dataset

from sawbones.observe.origins import built_at
from sawbones.observe.post_mortem.describing import Describer
from sawbones.observe.post_mortem.entering import Entrances
from sawbones.observe.post_mortem.following import Follower
from sawbones.observe.post_mortem.places import Picks, Place
from sawbones.observe.post_mortem.sources import Source, Sources, names_in
from sawbones.observe.post_mortem.values import is_a, members_of
from sawbones.observe.sites import is_user_file
from sawbones.schema.crash import Origin, Trace
from sawbones.schema.site import Site

MOST_SUBJECTS = 12
_COLLATE = "torch.utils.data._utils.collate"
_OPTIMIZER = "torch.optim"


class Tracer:
    def __init__(
        self,
        found: Sequence[types.TracebackType],
        sources: Sources,
        files: Callable[[], Iterator[Source]],
        describe: Describer,
    ) -> None:
        self._sources, self._files, self._describe = sources, files, describe
        users = [tb for tb in found if is_user_file(tb.tb_frame.f_code.co_filename)]
        last = max((i for i, tb in enumerate(found) if tb in users), default=-1)
        self._below = [tb.tb_frame for tb in found[last + 1 :]]
        self._entrances = Entrances(sources, files, users)
        self._inner = len(users) - 1

    def traces(self) -> tuple[Trace, ...]:
        found: list[Trace] = []
        for making in (self._operands, self._built, self._samples, self._frozen):
            try:
                found += [trace for trace in making() if trace.lines]
            except Exception:  # source that is not what runs: the traceback alone is left
                continue
        return tuple({trace.subject: trace for trace in reversed(found)}.values())

    def _trace(self, subject: str, node: ast.AST, place: Place) -> Trace:
        follower = Follower(self._entrances, self._describe)
        follower.follow(node, place)
        return Trace(subject, tuple(follower.lines))

    def _operands(self) -> Iterator[Trace]:
        """What the failing expression is made of, and each name in it."""
        node = self._entrances.node_of(self._inner) if self._inner >= 0 else None
        if node is None:
            return
        place = self._entrances.live(self._inner)
        parts = [n for n in ast.walk(node) if isinstance(n, ast.expr) and n is not node]
        if isinstance(node, ast.stmt):
            parts = [n for n in parts if n.lineno <= node.lineno]
        by_text = {place.source.segment(part): part for part in reversed(parts)}
        named = set(names_in(node))
        wanted = [*_operand_nodes(node), *(p for text, p in by_text.items() if text in named)]
        for part in wanted[:MOST_SUBJECTS]:
            yield self._trace(place.source.segment(part), part, place)

    def _built(self) -> Iterator[Trace]:
        """The arguments that the layer was built with, which refused its input."""
        for frame in reversed(self._below):
            module = frame.f_locals.get("self")
            site = built_at(module) if is_a(module, nn.Module) else None
            source = self._sources.shown(site.file) if site is not None else None
            if site is None or source is None:
                continue
            name = type(module).__name__
            for call in source.calls_of(name):
                if call.lineno <= site.line <= (call.end_lineno or 0):
                    place = self._entrances.around(source, call, {})
                    for part in (*call.args, *(word.value for word in call.keywords)):
                        yield self._trace(f"built {source.segment(part)}", part, place)
                    return

    def _samples(self) -> Iterator[Trace]:
        """What a data set gives that code of a library holds: a loader, or a trainer. Of samples that
        cannot be joined, the part that is at fault.
        """
        for frame in reversed(self._below):
            owner = frame.f_locals.get("self")
            data = [v for v in members_of(owner).values() if is_a(v, Dataset)]
            if not data or is_a(owner, Dataset):
                continue
            follower = Follower(self._entrances, self._describe)
            follower.sample(data[0], self._part_at_fault())
            yield Trace("sample", tuple(follower.lines))
            return

    def _part_at_fault(self) -> Picks:
        """Which element of each sample the collate function had got to."""
        held = [
            frame.f_locals["batch"]
            for frame in self._below
            if frame.f_globals.get("__name__") == _COLLATE and "batch" in frame.f_locals
        ]
        picks: list[Any] = []
        for outer, inner in pairwise(held):
            if not (type(outer) in (list, tuple) and type(inner) in (list, tuple) and outer):
                continue
            first = outer[0]
            parts: dict[Any, Any] = first if type(first) is dict else {}
            if type(first) in (list, tuple):
                parts = dict(enumerate(first))
            picks += [key for key, part in parts.items() if inner and part is inner[0]][:1]
        return tuple(picks)

    def _frozen(self) -> Iterator[Trace]:
        """Lines that took parameters out of training, each after the call that ran it."""
        homes = [str(f.f_globals.get("__name__", "")) for f in self._below]
        if not any(home.startswith(_OPTIMIZER) for home in homes):
            return
        found: list[Origin] = []
        for source in self._files():
            for site in source.freezing():
                found += [*self._calls_around(source, site), Origin(site, site.code, "frozen")]
        yield Trace("frozen", tuple(found))

    def _calls_around(self, source: Source, site: Site) -> Iterator[Origin]:
        node = source.scope(site.line, site.function)
        if node is source.tree or any(
            self._entrances.live(n).node is node for n in range(self._inner + 1)
        ):
            return
        place = self._entrances.around(source, node, {})
        for call, caller in self._entrances.callers(place):
            at = caller.source.site(call.lineno, caller.function)
            yield Origin(at, caller.source.segment(call), "given")
            return


def _operand_nodes(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
        yield from (*node.args, *(word.value for word in node.keywords))
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.iter
    elif isinstance(node, ast.expr):
        yield node
