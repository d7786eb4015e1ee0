"""How often each check was right: counted from the tables of benchmarks/results/.

Two counts, which are never mixed. On programs by other hands, first tries only: the checks had not
met these programs, and a fault that was named first was right or was not. On our own broken scripts
(lab and corpus): the checks were written with these at hand, so that count shows what is kept
working, not what to expect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
OTHER_HANDS = "other_hands_round_*.md"
OWN = ("lab_cpu_*.md", "detection_cpu_*.md")
_FAULT = re.compile(r"[a-z]+\.[a-z0-9-]+")
_NAMED = re.compile(r"([a-z]+\.[a-z0-9-]+), (?:likely|proven)")

Row = dict[str, str]


@dataclass
class Tries:
    named: int = 0  # times that it stood first, likely or proven, on programs by other hands
    right: int = 0  # of these, times that it was the cause
    asked: int = 0  # programs by other hands of which it was the only right answer
    found: int = 0  # of these, programs in which it stood first
    own: int = 0  # our own broken scripts with this fault
    own_found: int = 0  # of these, scripts in which it stood first

    @property
    def elsewhere(self) -> str:
        return f"{self.right} of {self.named}" if self.named else "-"

    @property
    def seen_elsewhere(self) -> str:
        return f"{self.found} of {self.asked}" if self.asked else "-"

    @property
    def here(self) -> str:
        return f"{self.own_found} of {self.own}" if self.own else "-"


def tables(text: str) -> Iterator[Row]:
    """Rows of all Markdown tables, by the names of their columns."""
    columns: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not columns:
            columns = cells
        elif set(line) - set("|-: "):
            yield dict(zip(columns, cells, strict=False))


@cache
def first_tries() -> dict[str, Tries]:
    found: dict[str, Tries] = {}
    for path in sorted(RESULTS.glob(OTHER_HANDS)):
        for row in tables(path.read_text(encoding="utf-8")):
            _count_other(row, found)
    for pattern in OWN:
        for path in sorted(RESULTS.glob(pattern)):
            for row in tables(path.read_text(encoding="utf-8")):
                _count_own(row, found)
    return found


def _count_other(row: Row, found: dict[str, Tries]) -> None:
    for alarm in (row.get("twin"), row.get("twin, first try"), row.get("said")):
        named = _NAMED.match(alarm or "")
        if named:  # nothing is wrong with these programs
            found.setdefault(named[1], Tries()).named += 1
    right = _FAULT.findall(row.get("right", ""))
    if not right or "first try" not in row:
        return
    named = _NAMED.match(row["first try"])
    if named:
        tries = found.setdefault(named[1], Tries())
        tries.named += 1
        tries.right += named[1] in right
    if len(right) == 1:
        tries = found.setdefault(right[0], Tries())
        tries.asked += 1
        tries.found += bool(named) and named[1] == right[0]


def _count_own(row: Row, found: dict[str, Tries]) -> None:
    truth = row.get("truth", "")
    if "found" in row and _FAULT.fullmatch(truth):
        tries = found.setdefault(truth, Tries())
        tries.own += 1
        tries.own_found += row["found"].split(",")[0].strip() == truth
