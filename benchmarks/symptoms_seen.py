"""How often each fault showed each symptom: src/sawbones/lookup/seen.toml from recordings of broken
scripts.

    python benchmarks/symptoms_seen.py RECORDINGS...

RECORDINGS are folders with one folder per script, named after its fault (`loop.no-step-broken` of
the contract's recordings, `loop.no-step__style` of the corpus), each with the recording in `run`.
Twins are left out, and so are patients of a device that this machine lacks: they die for another
reason.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

from sawbones import symptoms
from sawbones.lab.ward import beds
from sawbones.schema import faults
from sawbones.store import read_run

TABLE = Path(__file__).resolve().parent.parent / "src" / "sawbones" / "lookup" / "seen.toml"
ELSEWHERE = {bed.fault for bed in beds() if bed.device == "cuda"}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("recordings", nargs="+", type=Path)
    given = p.parse_args()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    number = 0
    for folder in sorted(one for root in given.recordings for one in root.iterdir()):
        fault = fault_of(folder.name)
        if fault is None or not (folder / "run").is_dir():
            continue
        number += 1
        for seen in symptoms.read(read_run(folder / "run")).symptoms:
            counts[seen.symptom][fault] += 1
    lines = [f"# {number} recorded broken scripts, by benchmarks/symptoms_seen.py. Do not edit."]
    for symptom, found in sorted(counts.items()):
        lines += ["", f"[{symptom}]"]
        lines += [f'"{fault}" = {count}' for fault, count in found.most_common()]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(
        f"{TABLE.name}: {number} scripts, {sum(map(len, counts.values()))} pairs", file=sys.stderr
    )
    return 0


def fault_of(name: str) -> str | None:
    """None: a twin, or no fault of ours."""
    if name.endswith(("-healthy", "__twin")):
        return None
    fault = name.removesuffix("-broken").removeprefix("lab__").split("__")[0]
    return fault if fault in faults() and fault not in ELSEWHERE else None


if __name__ == "__main__":
    raise SystemExit(main())
