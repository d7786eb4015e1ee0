"""The documentation site: built without a warning, complete, and asking nobody else for anything."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from sawbones.schema import faults
from sawbones.symptoms import all_symptoms

if importlib.util.find_spec("zensical") is None:
    pytest.skip("Zensical is not installed", allow_module_level=True)

DOCS = Path(__file__).resolve().parents[2] / "docs"
# One of each kind, the widest tables and the longest lines among them.
LOOKED_AT = (
    "index.html",
    "tutorial/first-diagnosis.html",
    "how-to/checklists/decision-tree.html",
    "how-to/checklists/nan.html",
    "reference/symptoms/index.html",
    "reference/symptoms/does-not-learn.html",
    "reference/catalogue/index.html",
    "reference/catalogue/model.causal-leak.html",
    "reference/optimizers.html",
    "reference/cli.html",
    "reference/api.html",
    "explanation/derivations.html",
    "explanation/antipatterns.html",
    "results/overhead_cpu_202611.html",
)
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """Anchors, links and what the browser loads by itself."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


def _build(out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DOCS / "build_site.py"), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    done = _build(out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_of_the_folder_is_in_the_site(site: Path, pages: dict[Path, Page]) -> None:
    for source in DOCS.rglob("*.md"):
        name = "index.html" if source.name == "README.md" else f"{source.stem}.html"
        assert site / source.parent.relative_to(DOCS) / name in pages
    for fault in faults():
        assert site / "reference" / "catalogue" / f"{fault}.html" in pages
    for watched in all_symptoms():
        assert site / "reference" / "symptoms" / f"{watched.symptom}.html" in pages


def test_internal_links_and_anchors_lead_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for link in _internal(page.links + page.loaded):
            target, anchor = unquote(urlsplit(link).path), urlsplit(link).fragment
            file = (path.parent / target).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            where = f"{path.relative_to(site)} links to {link}"
            assert file.is_file(), where
            if anchor and file in pages:
                assert unquote(anchor) in pages[file].anchors, where


def _internal(links: list[str]) -> Iterator[str]:
    return (link for link in links if not urlsplit(link).scheme and not link.startswith("/"))


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        outside = [one for one in page.loaded if urlsplit(one).netloc]
        assert not outside, f"{path.relative_to(site)} loads {outside}"
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), style.name


def test_the_navigation_groups_the_catalogue_by_layer(site: Path) -> None:
    text = (site / "reference" / "catalogue" / "loss.double-softmax.html").read_text(
        encoding="utf-8"
    )
    for name in ("Tutorial", "Checklists", "Symptoms", "Catalogue", "evaluation", "optimizer"):
        assert re.search(rf">\s*{name}\s*<", text), name


def test_a_link_to_nowhere_ends_the_build(tmp_path: Path, site: Path) -> None:
    """The generator itself is asked: a warning of its must be an error."""
    for name in ("site-source/index.md", "site-source/site.css", "site-source/iframe-worker.js"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((site.parent / name).read_bytes())
    settings = (DOCS / "site" / "zensical.toml").read_text(encoding="utf-8")
    folders = '[project]\ndocs_dir = "site-source"\nsite_dir = "site"\n'
    (tmp_path / "zensical.toml").write_text(settings.replace("[project]\n", folders, 1))
    page = tmp_path / "site-source" / "index.md"
    page.write_text("# Here\n\n[somewhere](there.md)\n", encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "zensical.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "does not exist" in done.stdout + done.stderr


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen_and_ask_nobody(site: Path, visit: Any, width: int) -> None:
    page = visit((site / LOOKED_AT[0]).as_uri(), width=width, until="h1")
    for name in LOOKED_AT:
        page.goto((site / name).as_uri())
        over = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert over <= 0, f"{name} is {over} pixels too wide at {width}"
        broken = page.evaluate(
            "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        )
        assert not broken, f"{name}: {broken}"
    assert not page.trouble


@pytest.mark.browser
def test_the_search_works_from_the_file_system(site: Path, visit: Any) -> None:
    page = visit((site / "index.html").as_uri(), width=1280, until="h1")
    page.keyboard.press("Control+k")
    page.keyboard.type("gradients never cleared", delay=20)
    page.get_by_text("no-zero-grad").first.wait_for(timeout=20_000)
    assert not page.trouble
