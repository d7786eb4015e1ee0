"""The history of graded answers as a page: by layer, over time, and what is missed most."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from sawbones.lookup.curves import blocks

LATEST = 20
_POSSIBLE = {"cause": 15, "line": 8, "reproduction": 12, "measured": 6, "isolation": 14}


def page(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "No graded answer yet. Begin one: sawbones practise --level 1"
    points = [float(row["points"]) for row in rows]
    lines = [
        f"{len(rows)} graded answer{'s' * (len(rows) > 1)}, {mean(points):.0f} points on average",
        f"over time  {blocks(points[-60:], 0, 100)}",
        "",
        "layer          answers  points  minutes",
    ]
    by_layer: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        for layer in row["layers"]:
            by_layer[layer].append(row)
    for layer, those in sorted(by_layer.items(), key=lambda item: mean(_points(item[1]))):
        minutes = mean(float(row["minutes"]) for row in those)
        lines.append(f"{layer:<14} {len(those):>7}  {mean(_points(those)):>6.0f}  {minutes:>7.0f}")
    lines += ["", *_missed(rows), "", "latest"]
    for row in rows[-LATEST:]:
        day = time.strftime("%Y-%m-%d", time.localtime(row["when"]))
        layers = ", ".join(row["layers"])
        lines.append(f"{day}  level {row['level']}  {row['points']:>5g}  {layers}")
    return "\n".join(lines)


def written(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The last try of each assignment."""
    last = {row["assignment"]: row for row in rows}
    lines = ["", "written by hand"] if last else []
    for name, row in last.items():
        passed = "passed" if row["passed"] else "not yet"
        lines.append(f"{name:<15} {passed:<8} {row['points']:>5g}  {row['minutes']:g} minutes")
    return lines


def _points(rows: Sequence[dict[str, Any]]) -> list[float]:
    return [float(row["points"]) for row in rows]


def _missed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The part of the rubric with the smallest share of its points."""
    shares = {
        part: mean(float(row["lines"].get(part, 0)) / most for row in rows)
        for part, most in _POSSIBLE.items()
    }
    part = min(shares, key=lambda name: shares[name])
    return [f"weakest: {part}, {shares[part]:.0%} of its points"]
