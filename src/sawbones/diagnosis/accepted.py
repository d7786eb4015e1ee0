"""Findings that the user lives with: by pyproject.toml, by a comment on the line, by a baseline.

They are listed apart and change neither verdict nor exit status. They stay causes all the same: a
consequence of an ignored finding does not come back as a finding of its own, and a symptom that it
explains is explained.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sawbones.diagnosis.source_files import is_source
from sawbones.schema import Finding, Ignored, Run, Site, fault, faults
from sawbones.schema.errors import SawbonesError
from sawbones.schema.project import nearest_project

BASELINE_VERSION = 1
MOST_NAMED = 5  # comments or entries in one line of the report
_COMMENT = re.compile(r"#\s*sawbones:\s*ignore(?:\[([^\]]*)\])?")

Place = tuple[str, str, str]  # fault, file, text of the line: what stays when lines move


class BaselineNotReadable(SawbonesError):
    """A baseline that is not there, or is none."""


@dataclass(frozen=True)
class Comment:
    """`# sawbones: ignore[fault]` and the lines of the statement that it stands on."""

    file: str
    line: int
    lines: range
    faults: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def covers(self, fault_id: str, site: Site) -> bool:
        return fault_id in self.faults and site.file == self.file and site.line in self.lines


@dataclass(frozen=True)
class Baseline:
    file: str
    known: frozenset[Place] = frozenset()


@dataclass(frozen=True)
class Accepted:
    patterns: tuple[str, ...] = ()
    project: str = ""  # the pyproject.toml that holds them
    baseline: Baseline | None = None


@dataclass(frozen=True)
class Sorted:
    """`places`: the first line of everything that a check said of a standing fault."""

    findings: tuple[Finding, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    notes: tuple[str, ...] = ()
    places: Mapping[str, tuple[Site, ...]] = field(default_factory=dict)


def accepted_by(folder: Path, baseline: str | None = None) -> Accepted:
    """What pyproject.toml, seen from the script's folder, and a baseline file accept."""
    project = nearest_project(folder)
    raw = project.settings.get("ignore", [])
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw):
        raise SawbonesError(
            f"{project.file}: ignore = {raw!r} under [tool.sawbones]: a list of fault ids was "
            'expected, e.g. ignore = ["loop.sync-stall"]'
        )
    for name in raw:
        if not any(fnmatch(known, name) for known in faults()):
            try:
                fault(name)
            except SawbonesError as error:
                raise SawbonesError(f"{project.file}: ignore: {error}") from None
    return Accepted(tuple(raw), str(project.file or ""), read_baseline(baseline))


def read_baseline(file: str | None) -> Baseline | None:
    if file is None:
        return None
    try:
        document = json.loads(Path(file).read_text(encoding="utf-8"))
        if document["baseline"] != BASELINE_VERSION:
            raise ValueError(f"version {document['baseline']!r}")
        known = frozenset((e["fault"], e["file"], e["code"]) for e in document["findings"])
    except FileNotFoundError:
        raise BaselineNotReadable(
            f"no baseline {file}. Write it: sawbones diagnose --write-baseline {file} train.py"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BaselineNotReadable(
            f"{file} is no baseline ({type(error).__name__}: {error}). Write it again: sawbones "
            f"diagnose --write-baseline {file} train.py"
        ) from None
    return Baseline(file, known)


def write_baseline(file: Path, found: Sorted) -> int:
    """All findings that stand, and how many; line numbers are left out, since they move."""
    entries = sorted({place for f in found.findings for place in _keys(f, found.places)})
    document = {
        "baseline": BASELINE_VERSION,
        "findings": [{"fault": a, "file": b, "code": c} for a, b, c in entries],
    }
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(found.findings)


def sort(
    standing: Sequence[Finding],
    said: Iterable[Finding],
    run: Run,
    root: Path,
    accepted: Accepted | None,
    looked: Iterable[str] = (),
) -> Sorted:
    """Findings that count and findings that are ignored. `said`: everything that checks and trials
    said, before it was settled; one fault may be found at several lines, and a comment on one of
    them does not hide the others. `looked`: faults that were looked for and not found.
    """
    places: dict[str, tuple[Site, ...]] = {}
    for finding in (*said, *standing):
        known = places.get(finding.fault, ())
        places[finding.fault] = known + tuple(s for s in finding.where[:1] if s not in known)
    if accepted is None:
        return Sorted(tuple(standing), places=places)
    comments, mistakes = _comments(run, standing, root)
    kept: list[Finding] = []
    ignored: list[Ignored] = []
    for finding in standing:
        by = _accepting(finding, places[finding.fault], comments, accepted, places)
        if by:
            ignored.append(Ignored(finding, by))
        else:
            kept.append(_without_commented(finding, comments))
    # A fault that only a consequence would have named was looked for too.
    judged = {*looked, *places}
    notes = (*mistakes, *_unused(comments, places, judged), *_outdated(accepted.baseline, places))
    return Sorted(tuple(kept), tuple(ignored), notes, places)


def _accepting(
    finding: Finding,
    sites: Sequence[Site],
    comments: Sequence[Comment],
    accepted: Accepted,
    places: Mapping[str, tuple[Site, ...]],
) -> str:
    """What accepts the finding, in words; "" when nothing does."""
    if any(fnmatch(finding.fault, pattern) for pattern in accepted.patterns):
        return f"ignore in {accepted.project}"
    covering = [next((c for c in comments if c.covers(finding.fault, s)), None) for s in sites]
    if sites and all(covering):
        return f"the comment at {', '.join(str(c) for c in covering)}"
    if accepted.baseline is not None:
        known = accepted.baseline.known
        if all(key in known for key in _keys(finding, places)):
            return f"the baseline {accepted.baseline.file}"
    return ""


def _without_commented(finding: Finding, comments: Sequence[Comment]) -> Finding:
    where = tuple(s for s in finding.where if not any(c.covers(finding.fault, s) for c in comments))
    return replace(finding, where=where) if where else finding


def _keys(finding: Finding, places: Mapping[str, tuple[Site, ...]]) -> list[Place]:
    sites = places.get(finding.fault, ()) or (Site("", 0),)
    return [(finding.fault, s.file, " ".join(s.code.split()) or s.function) for s in sites]


def _comments(
    run: Run, findings: Sequence[Finding], root: Path
) -> tuple[list[Comment], tuple[str, ...]]:
    """All of them in the files that the run went through, and what is wrong with some."""
    sites = [e.site for e in run.events] + [m.site for m in run.modules]
    sites += [s for f in findings for s in f.where]
    files = {run.script, *(s.file for s in sites if s is not None)}
    found: list[Comment] = []
    mistakes: list[str] = []
    for file in sorted(files):
        if not is_source(root / file):
            continue
        for comment in comments_in(
            (root / file).read_text(encoding="utf-8", errors="replace"), file
        ):
            if not comment.faults:
                mistakes.append(f"{comment}: name the fault: # sawbones: ignore[loop.no-zero-grad]")
            unknown = [name for name in comment.faults if name not in faults()]
            mistakes += [f"{comment}: no fault {name!r} to ignore" for name in unknown]
            known = tuple(name for name in comment.faults if name in faults())
            found.append(replace(comment, faults=known))
    return found, tuple(mistakes[:MOST_NAMED])


def comments_in(source: str, file: str) -> list[Comment]:
    """Comments, not strings that look like one. A statement over several lines is one place."""
    found: list[Comment] = []
    begin: int | None = None
    waiting: list[tuple[int, tuple[str, ...]]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            line = token.start[0]
            if token.type == tokenize.COMMENT and (match := _COMMENT.match(token.string)):
                names = (name.strip() for name in (match[1] or "").split(","))
                waiting.append((line, tuple(filter(None, names))))
            elif token.type == tokenize.NEWLINE:
                covered = range(begin if begin is not None else line, line + 1)
                found += [Comment(file, at, covered, names) for at, names in waiting]
                begin, waiting = None, []
            elif begin is None and token.type not in _BETWEEN:
                begin = line
    except (tokenize.TokenError, SyntaxError):
        pass  # what Python cannot read has no statements either
    return found


_BETWEEN = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


def _unused(
    comments: Sequence[Comment], places: Mapping[str, tuple[Site, ...]], judged: set[str]
) -> tuple[str, ...]:
    """One line for all comments that ignore nothing, of faults that were looked for."""
    unused = [
        f"{comment} [{name}]"
        for comment in comments
        for name in comment.faults
        if name in judged and not any(comment.covers(name, s) for s in places.get(name, ()))
    ]
    return _counted(unused, "unused ignore comment")


def _outdated(baseline: Baseline | None, places: Mapping[str, tuple[Site, ...]]) -> tuple[str, ...]:
    if baseline is None:
        return ()
    here = {key for name in places for key in _keys(Finding(name, "", 0.0, ""), places)}
    gone = [f"{name} at {file or '?'}" for name, file, _ in sorted(baseline.known - here)]
    return _counted(gone, f"entry of {baseline.file} not found any more")


def _counted(items: list[Any], what: str) -> tuple[str, ...]:
    if not items:
        return ()
    more = f" and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return (f"{what} ({len(items)}): {', '.join(items[:MOST_NAMED])}{more}",)
