"""Writes the pages that `sawbones explain` also shows (src/sawbones/lookup/texts/) into docs/, and the
table of optimizers and the checklists the other way; --check compares, exits 1 on a difference.
"""

import argparse
import sys
from pathlib import Path

DOCS = Path(__file__).parent
TEXTS = DOCS.parent / "src" / "sawbones" / "lookup" / "texts"
CHECKLISTS = (DOCS / "how-to" / "checklists").glob("*.md")
COPIES = {
    TEXTS / "derivations.md": DOCS / "explanation" / "derivations.md",
    TEXTS / "antipatterns.md": DOCS / "explanation" / "antipatterns.md",
    TEXTS / "decision-tree.md": DOCS / "how-to" / "checklists" / "decision-tree.md",
    TEXTS / "cheat-sheet.md": DOCS / "how-to" / "checklists" / "cheat-sheet.md",
    DOCS / "reference" / "optimizers.md": TEXTS / "optimizers.md",
}
COPIES |= {
    page: TEXTS / f"checklist-{page.name}"
    for page in sorted(CHECKLISTS)
    if page.name != "README.md" and page not in COPIES.values()
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    for source, target in COPIES.items():
        text = source.read_bytes()
        if not check:
            target.write_bytes(text)
        elif not target.exists() or target.read_bytes() != text:
            sys.exit(f"{target} differs from {source}. Write it anew: make docs")


if __name__ == "__main__":
    main()
