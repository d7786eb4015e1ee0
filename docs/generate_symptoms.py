"""docs/reference/symptoms.md from the symptom files: their paragraphs, each with a thumbnail of the
curve where the curve is what one sees.

    python docs/generate_symptoms.py          write the page
    python docs/generate_symptoms.py --check  fail when it is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

from sawbones import symptoms
from sawbones.lookup.curves import CURVES, STEPS

PAGE = Path(__file__).resolve().parent / "reference" / "symptoms.md"
HEAD = """# Symptoms

Written by `python docs/generate_symptoms.py` from `src/sawbones/symptoms/`. Do not edit.

A symptom is what is wrong to see, measured on the recording, before anything is said about causes.
*Ill* ones bar the verdict `healthy`: where no likely or proven finding explains one, the verdict is
`unexplained`. *Notable* ones are shown and change neither verdict nor exit status. Where the null
of a symptom is not known for a run, it says that it could not look, and why (`could_not_see` in
the JSON report).
"""
WIDTH, HEIGHT = 180, 54
STROKES = ('stroke="#2563eb"', 'stroke="#d97706" stroke-dasharray="4 3"')


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print(f"{PAGE.name} is out of date: python docs/generate_symptoms.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


def page() -> str:
    parts = [HEAD]
    for cls, title in (("ill", "Ill"), ("notable", "Notable")):
        parts.append(f"## {title}\n")
        parts += [_entry(w) for w in symptoms.all_symptoms() if w.cls == cls]
    return "\n".join(parts)


def _entry(watched: symptoms.Watched) -> str:
    title, _, rest = watched.page.strip().partition("\n")
    body = rest.strip().replace("## ", "#### ")
    curve = f"{thumbnail(watched.symptom)}\n\n" if watched.symptom in CURVES else ""
    causes = ", ".join(f"`{cause}`" for cause in watched.causes)
    return f"### {watched.symptom}\n\n{title}.\n\n{curve}{body}\n\n#### Explained by\n{causes}\n"


def thumbnail(symptom: str) -> str:
    """Training solid, evaluation dashed; a curve that ends early has turned NaN."""
    lines = "".join(
        f'<polyline fill="none" {stroke} stroke-width="2" points="{_points(curve)}"/>'
        for curve, stroke in zip(CURVES[symptom], STROKES, strict=False)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{symptom}" '
        f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">{lines}</svg>'
    )


def _points(curve: list[float]) -> str:
    across = WIDTH / (len(STEPS) - 1)
    return " ".join(f"{step * across:.0f},{HEIGHT * (1 - y):.0f}" for step, y in enumerate(curve))


if __name__ == "__main__":
    raise SystemExit(main())
