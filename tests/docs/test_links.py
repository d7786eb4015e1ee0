"""Links of the pages lead somewhere: to a file, and to a heading of it where they name one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(((?!https?:|mailto:)[^)#\s]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"```.*?```", re.DOTALL)


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and the code hosts make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{path} is not there"
        assert not anchor or anchor in slugs(target), f"no heading #{anchor} in {target.name}"


def test_a_path_of_a_page_that_is_named_in_a_text_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"`(docs/[\w./-]+\.md)`", page.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{page.relative_to(ROOT)} names {name}"
