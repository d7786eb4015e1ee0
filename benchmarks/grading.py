"""The grader of exercises against points that were given by hand, from the rubric, before.

    python benchmarks/grading.py [--out benchmarks/results/grading_cpu_202611.md]

tests/practise/answers/ holds 30 answers to three exercises: right, right cause with the wrong line,
half right, lucky guesses without evidence, wrong. Each is graded by running it. What answers to one
exercise share (the script, its twin, the command, a trial) is run once.
"""

from __future__ import annotations

import argparse
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sawbones.practise import answers
from sawbones.practise.examining import examiner
from sawbones.practise.exercises import make
from sawbones.practise.grading import grade, total

ANSWERS = Path(__file__).parents[1] / "tests" / "practise" / "answers"
ORDER = ("right", "right cause, wrong line", "half right", "lucky guess", "wrong")
FILES = {"fix": "fix.patch", "test": "test_it.py", "report": "report.md"}


@dataclass(frozen=True)
class Row:
    exercise: str
    kind: str
    about: str
    by_hand: float
    graded: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", help="one exercise")
    given = parser.parse_args()
    rows: list[Row] = []
    for path in sorted(ANSWERS.glob(f"{given.only or '*'}.toml")):
        rows += graded(path)
    text = page(rows)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


def graded(path: Path) -> list[Row]:
    held = tomllib.loads(path.read_text(encoding="utf-8"))
    exercise = make(held["seed"], held["level"])
    rows = []
    with tempfile.TemporaryDirectory(prefix="grading-") as scratch:
        folder = Path(scratch)
        (folder / exercise.broken.file).write_bytes(exercise.broken.raw)
        with examiner(exercise, folder, print) as trials_for:
            for row in held["answer"]:
                given = answers.answer(folder, _on_disk(folder, row))
                lines = grade(exercise, given, trials_for(given))
                points = total(lines)
                print(f"{path.stem}, {row['class']}, {row['about']}: {row['total']} {points}")
                for line in lines:
                    print(f"    {line.points:g} of {line.most:g} {line.part}: {line.why}")
                rows.append(Row(path.stem, row["class"], row["about"], row["total"], points))
    return rows


def _on_disk(folder: Path, row: dict[str, Any]) -> dict[str, object]:
    asked: dict[str, object] = {n: row.get(n) for n in ("fault", "line", "because", "claims")}
    for name, file in FILES.items():
        if name in row:
            (folder / file).write_text(row[name], encoding="utf-8")
            asked[name] = file
    return asked


def rank_correlation(one: list[float], other: list[float]) -> float:
    """Spearman's, with mean ranks for ties."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: list[float]) -> np.ndarray:
    array = np.asarray(values)
    below = (array[:, None] > array[None, :]).sum(axis=1)
    equal = (array[:, None] == array[None, :]).sum(axis=1)
    return np.asarray(below + (equal - 1) / 2)


def inversions(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Answers to one exercise of which the one of the better class got no more points."""
    return [
        (better, worse)
        for better in rows
        for worse in rows
        if better.exercise == worse.exercise
        and ORDER.index(better.kind) < ORDER.index(worse.kind)
        and better.graded <= worse.graded
    ]


def page(rows: list[Row]) -> str:
    found = rank_correlation([r.by_hand for r in rows], [r.graded for r in rows])
    lines = [
        "# The grader against points by hand",
        "",
        "`python benchmarks/grading.py`: answers of `tests/practise/answers/`. The points by hand were",
        "committed before the grader was run on them; whoever gave them had written the answers and",
        "knew the grader's code, so this shows that the grader does what the rubric says, not that an",
        "examiner who never saw it would agree.",
        "",
        f"{len(rows)} answers, rank correlation (Spearman) {found:.3f}, "
        f"largest difference {max(abs(r.by_hand - r.graded) for r in rows):g} points, "
        f"{len(inversions(rows))} pairs of classes inverted.",
        "",
        "| exercise | class | answer | by hand | grader |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.exercise} | {r.kind} | {r.about} | {r.by_hand:g} | {r.graded:g} |" for r in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
