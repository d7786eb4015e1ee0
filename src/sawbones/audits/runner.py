"""Runs the audits of one command over a case and makes the report: the same record as every other
report of Sawbones.
"""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from sawbones.audits.case import Case
from sawbones.audits.options import AuditError, CannotLook
from sawbones.schema import CouldNotLook, Finding, Report
from sawbones.schema.finding import STATUSES

COMMANDS = ("leaks", "shift", "tokens", "data")
# An audit of one folder that another command runs too.
BORROWED = {"leaks": ("data.duplicates", "data.conflicts"), "data": ("leaks.target",)}


@dataclass(frozen=True, slots=True)
class Audit:
    name: str
    fault: str
    also: tuple[str, ...]
    page: str
    look: Callable[[Any], Iterable[Finding]]


def _modules(command: str) -> Iterator[tuple[str, ModuleType]]:
    package = importlib.import_module(f"sawbones.audits.{command}")
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        yield f"{command}.{found.name}", importlib.import_module(f"{package.__name__}.{found.name}")


@cache
def audits_of(command: str) -> tuple[Audit, ...]:
    """One file is one audit; a file without `look` is a part that others share."""
    modules = list(_modules(command))
    modules += [
        (name, importlib.import_module(f"sawbones.audits.{name}"))
        for name in BORROWED.get(command, ())
    ]
    return tuple(
        Audit(
            name,
            module.FAULT,
            tuple(getattr(module, "ALSO", ())),
            module.__doc__ or "",
            module.look,
        )
        for name, module in modules
        if hasattr(module, "look")
    )


@cache
def pages() -> dict[str, str]:
    """fault -> page, for the faults whose page is an audit's docstring."""
    found = {
        audit.fault: audit.page
        for command in COMMANDS
        for audit in audits_of(command)
        if "## What it sees" in audit.page
    }
    return dict(sorted(found.items()))


def run(command: str, case: Case, origin: str, began: float, strict: bool = False) -> Report:
    findings: list[Finding] = []
    blind: list[CouldNotLook] = []
    looked: list[str] = []
    for audit in audits_of(command):
        said: list[Finding] = []
        try:
            for finding in audit.look(case):
                said.append(finding)
            looked += [
                fault
                for fault in (audit.fault, *audit.also)
                if fault not in {f.fault for f in said}
            ]
        except CannotLook as why:
            blind.append(CouldNotLook(audit.fault, str(why)))
        except AuditError:
            raise
        except Exception as error:  # one audit's mistake must not cost the user the others' answers
            if "Query interrupted" in str(error):  # DuckDB's word for Ctrl-C
                raise KeyboardInterrupt from error
            if strict:
                raise
            blind.append(
                CouldNotLook(
                    audit.fault,
                    f"the audit itself failed: {type(error).__name__}: {_first_line(error)}",
                )
            )
        findings += said
    findings.sort(key=lambda f: (-STATUSES.index(f.status), -f.confidence))
    sick = any(f.status in ("likely", "proven") for f in findings)
    fired = {f.fault for f in findings}
    unseen = {b.fault for b in blind}
    return Report(
        verdict="sick" if sick else "healthy" if looked or not blind else "inconclusive",
        script=origin,
        steps=0,
        seconds=time.monotonic() - began,
        findings=tuple(findings),
        could_not_look=tuple(dict.fromkeys(blind)),
        looked=tuple(
            dict.fromkeys(fault for fault in looked if fault not in fired and fault not in unseen)
        ),
        environment={"audit": facts_of(command, case)},
        notes=tuple(dict.fromkeys(case.notes)),
    )


def facts_of(command: str, case: Case) -> Mapping[str, Any]:
    return {
        "command": command,
        "engine": case.session.name,
        "rows": sum(split.rows for split in case.splits.values()),
        "splits": [
            {"role": s.role, "origin": s.origin, "rows": s.rows, "columns": len(s.columns)}
            for s in case.splits.values()
        ],
        "thresholds": case.thresholds.as_dict(),
        "distributions": case.drawings,
    }


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""
