"""Recipes: what to change for a finding. One beside each fault, found by its place.

`faults/<layer>/<fault>/fix.py` holds `fix(case)`, which yields changes, the smallest first, or says
what a person has to decide. It has what the checks have, the run and the finding, and the text of
the user's files. It runs nothing and writes nothing: whether a change heals is seen by trying it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from sawbones.faults import all_checks
from sawbones.fixing.editing import Edit
from sawbones.fixing.names import means_the_same, method_calls, receiver
from sawbones.fixing.source import NotReadable, Source
from sawbones.observe.notebook import cell_source
from sawbones.schema import Event, Finding, Run, Site


@dataclass(frozen=True)
class Change:
    """Edits that belong together, and what they do in one line."""

    summary: str
    edits: tuple[Edit, ...]
    unsafe: str = ""  # why a person should read it first, even where it heals


@dataclass(frozen=True)
class Decide:
    """No change of ours: what a person has to decide, and what each choice costs."""

    text: str


Recipe = Callable[["Case"], Iterable[Change | Decide]]


@dataclass(frozen=True)
class Use:
    """An object of the user's where it was used: the call, and the expression that names it."""

    source: Source
    call: ast.Call
    name: ast.expr

    @property
    def text(self) -> str:
        return self.source.text_of(self.name)

    @property
    def statement(self) -> ast.stmt:
        return self.source.statement(self.call)

    def reaches(self, there: ast.AST) -> bool:
        return means_the_same(self.source, self.name, there)


@dataclass
class Case:
    """A finding, the run it was made from, and the user's files."""

    finding: Finding
    run: Run
    root: Path
    _sources: dict[str, Source | None] = field(default_factory=dict)

    @property
    def site(self) -> Site | None:
        return self.finding.where[0] if self.finding.where else None

    @property
    def shown_by_trial(self) -> bool:
        """A run without the fault went better: that somebody wanted it so is no objection."""
        verdict = self.finding.verdict
        return verdict is not None and verdict.outcome == "confirmed"

    def source(self, site: Site | None) -> Source | None:
        """The file of a site; only files below the working folder are changed."""
        if site is None:
            return None
        if site.file not in self._sources:
            self._sources[site.file] = self._read(site.file)
        found = self._sources[site.file]
        if found is None or not 1 <= site.line <= found.text.count("\n") + 1:
            return None
        # A file that was changed since the run has other lines.
        same = not site.code or found.line(site.line).strip()[:200] == site.code
        return found if same else None

    def _read(self, file: str) -> Source | None:
        path = (self.root / file).resolve()
        if not path.is_relative_to(self.root.resolve()):
            return None
        cell = cell_source(str(path))
        try:
            return Source.read(path, file) if cell is None else Source.of(cell.encode(), file)
        except NotReadable:
            return None

    def sources(self, change: Change) -> list[Source]:
        """The files that a change edits."""
        files = dict.fromkeys(edit.file for edit in change.edits)
        known = (self._sources[file] for file in files)
        return [source for source in known if source is not None]

    def places(self) -> Iterator[tuple[Source, Site]]:
        """Where the finding points, best first, as far as the files are at hand."""
        for site in self.finding.where:
            source = self.source(site)
            if source is not None:
                yield source, site

    def calls(self, *names: str) -> Iterator[tuple[Source, ast.Call]]:
        """Calls of these functions at the places of the finding."""
        for source, site in self.places():
            for call in source.calls_at(site.line, *names):
                yield source, call

    # objects of the training loop

    def optimizer(self, index: int | None = None) -> Use | None:
        """The optimizer where it steps."""
        through = {e.site for e in self.run.of_kind("scaler_step")}
        for event in self.run.of_kind("step"):
            if index is not None and event.data.get("optimizer") != index:
                continue
            found = self._use_at(event, ("step",), as_argument=event.site in through)
            if found is not None:
                return found
        return None

    def made_optimizer(self, index: int = 0) -> tuple[Source, ast.Call] | None:
        """The call that made it."""
        made = next((o for o in self.run.optimizers if o.index == index), None)
        source = self.source(made.site) if made is not None else None
        if made is None or made.site is None or source is None:
            return None
        calls = source.calls_at(made.site.line, made.cls)
        if not calls:
            line = source.calls_at(made.site.line)
            calls = [c for c in line if c.args or c.keywords][:1]
        return (source, calls[0]) if calls else None

    def scaler(self) -> Use | None:
        for kind, method in (("scaler_step", "step"), ("unscale", "unscale_"), ("scale", "scale")):
            for event in self.run.of_kind(kind):
                found = self._use_at(event, (method,))
                if found is not None:
                    return found
        return None

    def use(self, kind: str, *methods: str) -> Use | None:
        """The object of the first event of this kind whose call is at hand."""
        for event in self.run.of_kind(kind):
            found = self._use_at(event, methods)
            if found is not None:
                return found
        return None

    def _use_at(
        self, event: Event, methods: tuple[str, ...], as_argument: bool = False
    ) -> Use | None:
        source = self.source(event.site)
        if source is None or event.site is None:
            return None
        for call in method_calls(source, event.site.line, *methods):
            name = call.args[0] if as_argument and call.args else receiver(call)
            if name is not None:
                return Use(source, call, name)
        return None

    def statement(self, site: Site | None) -> tuple[Source, ast.stmt] | None:
        source = self.source(site)
        found = source.statement_at(site.line) if source is not None and site is not None else None
        return (source, found) if source is not None and found is not None else None


def left_to_a_person(choices: str) -> Recipe:
    """The recipe of a fault that no change of ours mends."""
    return lambda case: (Decide(choices),)


@cache
def recipes() -> dict[str, Recipe]:
    """Fault -> its recipe, over all rooms that have one."""
    found: dict[str, Recipe] = {}
    for check in all_checks():
        room = f"sawbones.faults.{check.fault.replace('-', '_')}"
        if importlib.util.find_spec(f"{room}.fix") is not None:
            found[check.fault] = importlib.import_module(f"{room}.fix").fix
    return found
