"""Which findings fail and which are only reported, as set on the command line or in [tool.sawbones]
of pyproject.toml.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from sawbones.schema import Finding, fault, faults
from sawbones.schema.errors import SawbonesError

KEYS = ("hard", "skip", "soft")


class SettingsNotReadable(SawbonesError):
    """[tool.sawbones] of a pyproject.toml that says something else than it may."""


@dataclass(frozen=True)
class Rule:
    glob: str
    grade: str  # hard, soft or skip
    said_by: str  # "--soft", "pyproject.toml"


@dataclass(frozen=True)
class Grades:
    """The last rule that fits decides. Without one: likely and proven findings fail, suspected ones
    are reported.
    """

    rules: tuple[Rule, ...] = ()

    def with_rules(self, grade: str, globs: Sequence[str], said_by: str) -> Grades:
        for glob in globs:
            if not any(fnmatch(known, glob) for known in faults()):
                fault(glob)  # names the nearest
        return Grades((*self.rules, *(Rule(glob, grade, said_by) for glob in globs)))

    def rule(self, fault_id: str) -> Rule | None:
        return next((rule for rule in reversed(self.rules) if fnmatch(fault_id, rule.glob)), None)

    def skips(self, fault_id: str) -> Rule | None:
        rule = self.rule(fault_id)
        return rule if rule is not None and rule.grade == "skip" else None

    def graded(self, finding: Finding) -> tuple[Finding, str | None]:
        """The finding with the status that its grade gives it, and the note that records a change.

        Only likely and proven findings make a report sick, so a soft one is listed as suspected and
        a hard one as likely at least.
        """
        rule = self.rule(finding.fault)
        if rule is None or rule.grade == "skip":
            return finding, None
        by = f"{rule.said_by} {rule.glob}"
        if rule.grade == "soft" and finding.status != "suspected":
            return replace(
                finding, status="suspected"
            ), f"{finding.fault} is {finding.status} and does not fail: soft by {by}"
        if rule.grade == "hard" and finding.status == "suspected":
            return replace(
                finding, status="likely"
            ), f"{finding.fault} is only suspected and fails all the same: hard by {by}"
        return finding, None


def project_grades(start: Path) -> Grades:
    """From the nearest pyproject.toml, upwards from `start`."""
    for folder in (start.resolve(), *start.resolve().parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Grades()


def _read(path: Path) -> Grades:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("sawbones", {})
    except tomllib.TOMLDecodeError as error:
        raise SettingsNotReadable(f"{path} can't be read: {error}") from error
    grades = Grades()
    for key, value in table.items():
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SettingsNotReadable(
                f"{path}: [tool.sawbones] has no {key!r}.{hint} It takes: {', '.join(KEYS)}"
            )
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsNotReadable(
                f"{path}: {key} = {value!r}; a list of globs is expected, e.g. {key} = "
                "['pipeline.*']"
            )
        grades = grades.with_rules(key, value, "pyproject.toml")
    return grades
