"""The confusion matrix of a scored run: truth by row, first finding by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sawbones.scoring.score import Result, markdown

HEALTHY = "healthy"


def confusion(results: Sequence[Result]) -> dict[tuple[str, str], int]:
    """(truth, found) -> number of cases. Found is the first likely or proven finding, or "healthy"
    when there is none.
    """
    return dict(Counter((r.fault or HEALTHY, r.found[0] if r.found else HEALTHY) for r in results))


def matrix_markdown(results: Sequence[Result]) -> str:
    counts = confusion(results)
    found = sorted({f for _, f in counts}, key=lambda name: (name == HEALTHY, name))
    lines = ["| truth \\ found | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for truth in sorted({t for t, _ in counts}, key=lambda name: (name == HEALTHY, name)):
        lines.append(
            f"| {truth} | " + " | ".join(str(counts.get((truth, f), "")) for f in found) + " |"
        )
    return "\n".join(lines) + "\n"


def bench_markdown(results: Sequence[Result], title: str, header: Sequence[str] = ()) -> str:
    return markdown(results, title, header) + "\n## Confusion matrix\n\n" + matrix_markdown(results)
