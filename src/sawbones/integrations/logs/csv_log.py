"""CSV: a column with the step, and one column per curve. Empty cells are skipped, as the logs of
Lightning have them.
"""

from __future__ import annotations

import csv
from pathlib import Path

from sawbones.integrations.logs import LogNotReadable
from sawbones.schema.curve import Log, curve

STEPS = ("step", "global_step", "iteration", "iter", "epoch")


def read(path: Path) -> Log:
    if path.is_dir():
        raise LogNotReadable(f"{path} is a folder: name the CSV file")
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.DictReader(file)
        columns = [name for name in rows.fieldnames or () if name]
        by_name = {name.strip().lower(): name for name in columns}
        counted = next((by_name[name] for name in STEPS if name in by_name), None)
        found: dict[str, list[tuple[int, float]]] = {n: [] for n in columns if n != counted}
        for number, row in enumerate(rows):
            at = _number(row.get(counted)) if counted else number
            for name in found:
                value = _number(row.get(name))
                if value is not None and at is not None:
                    found[name].append((int(at), value))
    return Log(str(path), tuple(curve(name, points) for name, points in found.items() if points))


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text and text.strip() else None
    except ValueError:
        return None
