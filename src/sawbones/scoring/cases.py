"""Cases: scripts with a known answer. The truth about the line is the difference between a broken
script and its twin.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sawbones.lab.ward import beds, truth_lines

NEAR_LINES = 5


@dataclass(frozen=True)
class Case:
    name: str
    fault: str | None  # None: healthy, any likely or proven finding is a false alarm
    script: Path
    argv: tuple[str, ...] = ()
    lines: frozenset[int] = frozenset()  # of the script, in which the fault lies
    num_ranks: int = 1

    def located(self, file: str, line: int) -> bool:
        same = Path(file).name == self.script.name
        return same and any(abs(line - n) <= NEAR_LINES for n in self.lines)


def changed_lines(broken: str, healthy: str) -> frozenset[int]:
    """Lines of `broken` (from 1) that the fix changes; for a pure insertion the lines on either
    side of it.
    """
    found: set[int] = set()
    matcher = difflib.SequenceMatcher(
        None, broken.splitlines(), healthy.splitlines(), autojunk=False
    )
    for tag, i1, i2, _, _ in matcher.get_opcodes():
        if tag in ("replace", "delete"):
            found.update(range(i1 + 1, i2 + 1))
        elif tag == "insert":
            found.update((max(i1, 1), i1 + 1))
    return frozenset(found)


def corpus_cases(corpus: Path, cuda: bool = False) -> Iterator[Case]:
    """faults/<fault>/<style>/{broken,healthy}.py and healthy/*.py.

    A file `ranks` beside a pair, or <script>.ranks beside a healthy one, holds the number of ranks;
    a file `device` names the device without which there is no fault.
    """
    for broken in sorted(corpus.glob("faults/*/*/broken.py")):
        if broken.with_name("device").exists() and not cuda:
            continue
        healthy = broken.with_name("healthy.py")
        fault, style = broken.parent.parent.name, broken.parent.name
        lines = changed_lines(
            broken.read_text(encoding="utf-8"), healthy.read_text(encoding="utf-8")
        )
        ranks = broken.with_name("ranks")
        num = int(ranks.read_text(encoding="utf-8")) if ranks.exists() else 1
        yield Case(f"{fault}/{style}", fault, broken, lines=lines, num_ranks=num)
        yield Case(f"{fault}/{style}/twin", None, healthy, num_ranks=num)
    for script in sorted(corpus.glob("healthy/*.py")):
        beside = script.with_suffix(".ranks")
        num = int(beside.read_text(encoding="utf-8")) if beside.exists() else 1
        yield Case(f"healthy/{script.stem}", None, script, num_ranks=num)


def lab_cases(cuda: bool = False) -> Iterator[Case]:
    """Every patient of the lab and its twin: one script, told apart by --healthy. Those of a CUDA
    device only where asked for.
    """
    for bed in beds():
        if bed.device == "cuda" and not cuda:
            continue
        yield Case(
            f"lab/{bed.fault}",
            bed.fault,
            bed.script,
            lines=truth_lines(bed.script),
            num_ranks=bed.num_ranks,
        )
        yield Case(
            f"lab/{bed.fault}/twin", None, bed.script, ("--healthy",), num_ranks=bed.num_ranks
        )
