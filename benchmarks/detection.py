"""The scored run over the corpus (and, through `sawbones lab bench`, over the lab).

python benchmarks/detection.py                         every case, with experiments
python benchmarks/detection.py --no-experiments --cache DIR --only 'loss.*'
"""

from __future__ import annotations

import argparse
import platform
import random
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

from sawbones.scoring.cases import corpus_cases
from sawbones.scoring.score import markdown, score, totals

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "--only",
        nargs="+",
        default=["*"],
        metavar="GLOB",
        help="cases whose name matches one of these",
    )
    p.add_argument(
        "--broken", action="store_true", help="leave out the twins and the healthy scripts"
    )
    p.add_argument(
        "--draw",
        type=int,
        metavar="N",
        help="as many of them, drawn at random (the same ones every time)",
    )
    p.add_argument("--no-experiments", action="store_true")
    p.add_argument(
        "--cache", type=Path, help="keep recordings here and, without experiments, read them again"
    )
    p.add_argument("--jobs", type=int, default=1, help="cases at a time")
    p.add_argument("--out", type=Path, help="write the table here (markdown)")
    given = p.parse_args()
    cases = [
        c
        for c in corpus_cases(ROOT / "tests" / "corpus")
        if any(fnmatch(c.name, glob) for glob in given.only)
    ]
    cases = [c for c in cases if c.fault or not given.broken]
    if given.draw is not None and given.draw < len(cases):
        cases = random.Random(0).sample(cases, given.draw)

    def done(r) -> None:  # type: ignore[no-untyped-def]
        ok = r.top1 if r.fault else not r.found
        place = "located" if r.located else ""
        found, unsure = ", ".join(r.found) or "-", ", ".join(r.suspected)
        print(
            (
                f"{'ok   ' if ok else 'WRONG'} {r.case:<60} {found} ({unsure}) {place} "
                f"{r.seconds:.0f}s {r.error}"
            ),
            flush=True,
        )

    results = score(cases, not given.no_experiments, given.cache, done, given.jobs)
    print({k: round(v, 3) for k, v in totals(results).items()})
    if given.out:
        import torch

        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
        ).stdout.strip()
        versions = (
            f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}"
        )
        command = f"`python benchmarks/detection.py {' '.join(sys.argv[1:])}`"
        header = [f"commit {commit}, {versions}, {time.strftime('%Y-%m-%d')}; {command}"]
        given.out.write_text(
            markdown(results, "Detection over the corpus", header), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
