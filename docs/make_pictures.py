"""docs/pictures/*.png: the live page as it looks, from real runs that this script makes.

    python docs/make_pictures.py                   all of them; needs Chromium and a few minutes
    python docs/make_pictures.py loop.no-zero-grad page

Each fault's picture is the top of the page of `sawbones run` on its patient of the lab. What the
pictures show depends on torch and fonts, so there is no check against them: look at each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sawbones.page.hub import Hub
from sawbones.page.server import PageServer
from sawbones.scoring.cases import lab_cases

PICTURES = Path(__file__).resolve().parent / "pictures"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
WIDTH, HEIGHT = 860, 620  # pixels
BROWSER = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking")
FAULTS = (
    "model.causal-leak",
    "loss.pad-not-ignored",
    "loss.double-softmax",
    "loop.no-zero-grad",
    "loop.clip-after-step",
    "optimizer.missing-params",
    "optimizer.lr-too-high",
    "model.dead-units",
    "model.vanishing-gradients",
    "data.unnormalized-input",
)
# name -> section of the page, of the example with two faults
SECTIONS = {"page": "content", "layers": "layers", "data": "data"}


def recorded(script: Path, folder: Path) -> Path:
    """The script is copied, so that no path of this machine is in the picture."""
    copy = shutil.copy(script, folder.parent / "train.py")
    command = [sys.executable, "-m", "sawbones", "run", "--quiet", "--page", "--out", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, Path(copy).name],
        cwd=folder.parent,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=600,
    )
    return folder


def photographed(browser: Any, folder: Path, pictures: dict[Path, str]) -> None:
    """picture -> the section that it begins with."""
    server = PageServer(Hub([folder]))
    server.start()
    try:
        size = {"width": WIDTH, "height": HEIGHT}
        page = browser.new_page(viewport=size, reduced_motion="reduce", color_scheme="light")
        page.goto(server.link)
        page.wait_for_selector("#about table", timeout=120_000)  # the last section stands
        page.add_style_tag(content="nav, #names { display: none } section { padding-top: 12px }")
        for path, section in pictures.items():
            page.evaluate(f"document.getElementById('{section}').scrollIntoView()")
            page.screenshot(path=path)
            print(f"wrote {path.relative_to(PICTURES.parent)} ({path.stat().st_size // 1000} kB)")
        page.close()
    finally:
        server.stop()


def main() -> int:
    from playwright.sync_api import sync_playwright

    wanted = set(sys.argv[1:]) or {*FAULTS, *SECTIONS}
    unknown = wanted - {*FAULTS, *SECTIONS}
    if unknown:
        print(f"no such picture: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    found = next((path for name in BROWSER if (path := shutil.which(name))), None)
    scripts = {case.fault: case.script for case in lab_cases() if case.fault}
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        sections = {PICTURES / f"{n}.png": s for n, s in SECTIONS.items() if n in wanted}
        if sections:
            run = recorded(EXAMPLES / "reviews.py", Path(place) / "reviews")
            photographed(browser, run, sections)
        for fault in (fault for fault in FAULTS if fault in wanted):
            run = recorded(scripts[fault], Path(place) / fault)
            photographed(browser, run, {PICTURES / f"{fault}.png": "content"})
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
