"""Builds the documentation site from docs/ into build/site; any warning of the generator is an error.

    make docs                        install what is needed, write the generated pages, build
    python docs/build_site.py        build alone
    python docs/build_site.py --out FOLDER   into FOLDER/site

The pages are copied to a folder of their own first (build/site-source), where README.md becomes
index.md, paths of other pages become links with the title of the page, and the navigation is made
from the folders and headings. So nothing has to be listed by hand.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

from sawbones.schema import LAYERS

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
INSTALL = 'python -m pip install -c constraints.txt -e ".[docs]"'
# Folder of the site -> its name in the navigation, in this order.
SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How-to",
    "how-to/checklists": "Checklists",
    "reference/symptoms": "Symptoms",
    "reference/catalogue": "Catalogue",
    "reference": "Reference",
    "explanation": "Explanation",
    "results": "Measurements",
}
# `docs/how-to/ci.md`, `benchmarks/results/overhead_cpu_202611.md`, in the text of a page
_PATH = re.compile(r"`((?:docs|benchmarks/results)/[\w./-]+\.md)`")
_LINK = re.compile(r"\[([^\]]*)\]\(((?!https?:)[^)#\s]+\.md)(#[^)\s]*)?\)")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_FENCED = re.compile(r"(```.*?```)", re.DOTALL)
NO_CONTENTS = "---\nhide:\n  - toc\n---\n\n"  # the column of the contents goes to the text

Nav = list[dict[str, "str | Nav"]]


def site_path(path: PurePosixPath) -> str | None:
    """Where a file of the repository stands in the site; None for one that is not in it."""
    if path.parts[:1] == ("docs",):
        inside = PurePosixPath(*path.parts[1:])
    elif path.parts[:2] == ("benchmarks", "results"):
        inside = PurePosixPath("results", *path.parts[2:])
    else:
        return None
    return str(inside.with_name("index.md") if inside.name == "README.md" else inside)


def sources() -> dict[str, PurePosixPath]:
    """Page of the site -> file of the repository."""
    found = [*DOCS.rglob("*.md"), *(ROOT / "benchmarks" / "results").glob("*.md")]
    paths = [PurePosixPath(path.relative_to(ROOT).as_posix()) for path in sorted(found)]
    return {page: path for path in paths if (page := site_path(path)) is not None}


def title_of(path: PurePosixPath) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    found = _HEADING.search(text)
    if found is None:
        raise SystemExit(f"{path} has no heading of the first level: the navigation needs one")
    return found[1].strip()


def page_text(page: str, path: PurePosixPath) -> str:
    """The file with its links as they are in the site; code blocks stay as they are."""
    text = (ROOT / path).read_text(encoding="utf-8")
    parts = [
        part if part.startswith("```") else _linked(part, page, path.parent)
        for part in _FENCED.split(text)
    ]
    has_sections = any("\n## " in part for part in parts if not part.startswith("```"))
    return ("" if has_sections else NO_CONTENTS) + "".join(parts)


def _linked(text: str, page: str, folder: PurePosixPath) -> str:
    def relative(target: str) -> str:
        return os.path.relpath(target, PurePosixPath(page).parent).replace(os.sep, "/")

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found.groups()
        source = PurePosixPath(os.path.normpath(folder / path))
        target = site_path(source)
        if target is None:
            raise SystemExit(f"{folder}: {found[0]} leads out of the site; name the file instead")
        if text.endswith(".md") and (ROOT / source).is_file():
            text = title_of(source)
        return f"[{text}]({relative(target)}{anchor or ''})"

    def mention(found: re.Match[str]) -> str:
        named = PurePosixPath(found[1])
        target = site_path(named)
        if target is None or target == page or not (ROOT / named).is_file():
            return found[0]
        return f"[{title_of(named)}]({relative(target)})"

    return _PATH.sub(mention, _LINK.sub(link, text))


def navigation(pages: dict[str, PurePosixPath]) -> Nav:
    nav: Nav = [{"Home": "index.md"}]
    for folder, name in SECTIONS.items():
        own = {p: path for p, path in pages.items() if str(PurePosixPath(p).parent) == folder}
        index = [{name: page} for page in own if page.endswith("/index.md")]
        titles = {page: title_of(path) for page, path in own.items() if page not in _pages(index)}
        if folder == "reference/catalogue":
            nav.append({name: [*index, *_by_layer(titles)]})
        else:
            entries = sorted(titles.items(), key=lambda item: item[1].lower())
            nav.append({name: [*index, *({title: page} for page, title in entries)]})
    return nav


def _pages(nav: Nav) -> set[str]:
    return {str(page) for entry in nav for page in entry.values()}


def _by_layer(titles: dict[str, str]) -> Nav:
    """fault ids without their layer, under the layer."""
    grouped: Nav = []
    for layer in LAYERS:
        own = {page: title for page, title in titles.items() if title.startswith(f"{layer}.")}
        if own:
            grouped.append({layer: [{t.partition(".")[2]: p} for p, t in sorted(own.items())]})
    return grouped


def stage(folder: Path) -> Path:
    """The pages, pictures and settings of the site; gives the settings file."""
    content = folder / "site-source"
    shutil.rmtree(content, ignore_errors=True)
    pages = sources()
    for page, path in pages.items():
        target = content / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_text(page, path), encoding="utf-8")
    shutil.copytree(DOCS / "pictures", content / "pictures")
    shutil.copy(DOCS / "site" / "site.css", content / "site.css")
    (content / "iframe-worker.js").write_text(worker_script(), encoding="utf-8")
    settings = (DOCS / "site" / "zensical.toml").read_text(encoding="utf-8")
    added = f'docs_dir = "site-source"\nsite_dir = "site"\nnav = {_toml(navigation(pages))}\n'
    settings = settings.replace("[project]\n", f"[project]\n{added}", 1)
    tomllib.loads(settings)
    (folder / "zensical.toml").write_text(settings, encoding="utf-8")
    return folder / "zensical.toml"


def _toml(nav: Nav) -> str:
    entries = [
        f"{{ {json.dumps(title)} = {json.dumps(to) if isinstance(to, str) else _toml(to)} }}"
        for entry in nav
        for title, to in entry.items()
    ]
    return f"[{', '.join(entries)}]"


def worker_script() -> str:
    """The generator's own search worker as text inside a script: a page that was opened as a file
    may start a worker from that, and from no other file.
    """
    home = Path(str(importlib.util.find_spec("zensical").origin)).parent  # type: ignore[union-attr]
    (source,) = (home / "templates" / "assets" / "javascripts" / "workers").glob("search.*.js")
    shim = (DOCS / "site" / "worker.js").read_text(encoding="utf-8")
    return shim.replace('"SEARCH_WORKER"', json.dumps(source.read_text(encoding="utf-8")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="site/ is put in there")
    out = parser.parse_args().out.resolve()
    if importlib.util.find_spec("zensical") is None:
        sys.exit(f"the site is built by Zensical, which is not installed: {INSTALL}")
    settings = stage(out)
    shutil.rmtree(out / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run([*command, "-f", str(settings)])
    if done.returncode:
        sys.exit("the site was not built: see the warnings above")
    print(f"open {out / 'site' / 'index.html'}")


if __name__ == "__main__":
    main()
