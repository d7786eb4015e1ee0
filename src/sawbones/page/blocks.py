"""What a section of the page is made of: tables and pictures, each with what is said where it is
empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sawbones.masking import shown_line
from sawbones.report import figures, wording

MOST_ROWS = 60
Block = dict[str, Any]


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], why: str = "") -> Block:
    """`why`: what is said where there are no rows."""
    cells = [[cell(value) for value in row] for row in rows[:MOST_ROWS]]
    left = len(rows) - len(cells)
    note = f"and {left} more" if left > 0 else ""
    return {"title": title, "heads": list(heads), "rows": cells, "why": why, "note": note}


def cell(value: Any) -> str:
    if value is None:
        return "–"
    return wording.number(value) if isinstance(value, float) else shown_line(str(value))


def picture(title: str, figure: figures.Figure | None, why: str, note: str = "") -> Block:
    said = "" if figure is not None else why
    return {"title": title, "figure": figure, "why": said, "note": note}


def gallery(title: str, named: Sequence[tuple[str, figures.Figure]], why: str) -> Block:
    """Small pictures side by side."""
    kept = [{"name": shown_line(name), "figure": figure} for name, figure in named]
    return {"title": title, "figures": kept, "why": "" if kept else why}


def columns(names: list[str], unit: str, values: list[float], height: int = 200) -> figures.Figure:
    return {
        "kind": "columns",
        "height": height,
        "names": names,
        "series": [{"name": unit, "values": values}],
    }
