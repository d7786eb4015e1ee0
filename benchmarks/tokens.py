"""How much code there is, counted so that formatting does not matter: tokens as Python's own
tokenizer counts them, comments, newlines and indentation aside. Lab pipelines do not count.

    python benchmarks/tokens.py                       # this tree
    python benchmarks/tokens.py --against 0ac2380     # beside that commit
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "src/sawbones"
QUIET = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
}
# What observes and decides, with the names that the parts had before.
KNOWLEDGE = {
    "observe",
    "checks",
    "faults",
    "stats",
    "experiments",
    "trials",
    "isolation",
    "triage",
    "testing",
    "diagnosis",
    "trace",
    "evidence",
    "symptoms",
    "properties",
}


def count(text: str) -> int:
    return sum(t.type not in QUIET for t in tokenize.generate_tokens(io.StringIO(text).readline))


def part(path: str) -> str | None:
    """The folder below src/sawbones; None for a lab pipeline."""
    inner = Path(path).relative_to(SOURCE).parts
    if inner[0] == "lab" or inner[-1] == "lab.py":
        return None
    return inner[0] if len(inner) > 1 else "(top)"


def files(commit: str | None) -> Iterator[tuple[str, str]]:
    if commit is None:
        for path in sorted((ROOT / SOURCE).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        return
    listed = _git("ls-tree", "-r", "--name-only", commit, SOURCE).splitlines()
    for name in listed:
        if name.endswith(".py"):
            yield name, _git("show", f"{commit}:{name}")


def table(commit: str | None) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, text in files(commit):
        if (where := part(name)) is not None:
            found[where] += count(text)
    return found


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--against", metavar="COMMIT", help="count that commit, too")
    given = p.parse_args()
    now = table(None)
    was = table(given.against) if given.against else Counter()
    print("| folder | then | now |\n|---|---|---|")
    for name in sorted({*now, *was}, key=lambda n: -max(now[n], was[n])):
        print(f"| {name} | {was[name]:,} | {now[name]:,} |")
    for label, chosen in (("observing and deciding", KNOWLEDGE), ("all", {*now, *was})):
        then = sum(n for name, n in was.items() if name in chosen)
        print(
            f"| **{label}** | {then:,} | {sum(n for name, n in now.items() if name in chosen):,} |"
        )


if __name__ == "__main__":
    main()
