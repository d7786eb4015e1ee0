"""What every limit was compared with over recorded runs: how near healthy ones come to it, and how
far broken ones lie beyond.

    SAWBONES_RECORDINGS=FOLDER pytest tests/faults/test_contract.py   # makes recordings of the lab
    python benchmarks/operating_points.py FOLDER --out benchmarks/results/operating_points_cpu.md

FOLDER holds one folder per recording: NAME/run, where NAME ends in -healthy or __twin, or begins
with healthy, for a run without a fault.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections import defaultdict
from pathlib import Path

import numpy as np

from sawbones import faults, symptoms
from sawbones.evidence import Limit, collecting, limits
from sawbones.schema.errors import SawbonesError
from sawbones.store import read_run


def named_limits() -> dict[Limit, str]:
    found = {}
    for module in pkgutil.iter_modules(limits.__path__):
        loaded = importlib.import_module(f"{limits.__name__}.{module.name}")
        for name, value in vars(loaded).items():
            if isinstance(value, Limit):
                found.setdefault(value, f"{module.name}.{name}")
    return found


def is_healthy(name: str) -> bool:
    return name.endswith(("-healthy", "__twin")) or name.startswith("healthy")


def collect(folder: Path) -> tuple[dict[Limit, dict[bool, list[float]]], dict[bool, int]]:
    seen: dict[Limit, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    runs = {True: 0, False: 0}
    for place in sorted(p for p in folder.iterdir() if (p / "run").is_dir()):
        try:
            run = read_run(place / "run")
        except SawbonesError:
            continue
        healthy = is_healthy(place.name)
        runs[healthy] += 1
        with collecting() as compared:
            faults.read(run)
            symptoms.read(run)
        for limit, values in compared.items():
            seen[limit][healthy] += values
    return seen, runs


def spread(values: list[float]) -> str:
    known = np.array([v for v in values if np.isfinite(v)])
    if not len(known):
        return "-"
    low, middle, high = np.quantile(known, [0.01, 0.5, 0.99])
    return f"{low:.3g} / {middle:.3g} / {high:.3g} ({len(values)})"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("folder", type=Path)
    p.add_argument("--out", type=Path)
    given = p.parse_args()
    seen, runs = collect(given.folder)
    names = named_limits()
    lines = [
        "# Operating points of the limits",
        "",
        f"{runs[True]} recordings without and {runs[False]} with a fault. Values compared "
        "with each "
        "limit: 1 %, 50 % and 99 % quantile (how many). A comparison may stand behind others, so "
        "what is counted is what reached it.",
        "",
        "| limit | value | unit | healthy runs | broken runs |",
        "|---|---|---|---|---|",
    ]
    for limit, name in sorted(names.items(), key=lambda item: item[1]):
        healthy, broken = seen[limit][True], seen[limit][False]
        lines.append(
            f"| {name} | {limit.value:.3g} | {limit.unit} | {spread(healthy)} | {spread(broken)} |"
        )
    silent = sum(not (seen[limit][True] or seen[limit][False]) for limit in names)
    lines += ["", f"{len(names)} limits; {silent} were compared with nothing in these recordings."]
    text = "\n".join(lines) + "\n"
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
