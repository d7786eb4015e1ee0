"""The quick tests of .ci/matrix with a Python as it is, on a machine where nothing can be installed.

    python .ci/quick_here.py --jobs 16 --out results.md

Each file of tests in a process of its own, so that pytest alone is enough: neither pytest-xdist nor
pytest-timeout. What needs a package that is not there is left out, and named.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
NEEDS_BROWSER = "tests/report/test_report_browser.py"


@dataclass(frozen=True)
class Outcome:
    test: str
    result: str  # passed, failed, skipped, left out
    seconds: float
    why: str = ""


def quick_files() -> list[str]:
    """Those with a time limit of their own first, then the largest: what takes longest should not
    begin last.
    """
    named = re.search(r'^quick="(.*)"$', (ROOT / ".ci" / "matrix").read_text(), re.MULTILINE)
    assert named, ".ci/matrix names the quick tests in a line quick=..."
    files = [file for folder in named[1].split() for file in (ROOT / folder).rglob("test_*.py")]
    files.sort(key=lambda f: ("mark.timeout(" in f.read_text(), f.stat().st_size), reverse=True)
    return [str(f.relative_to(ROOT)) for f in files if str(f.relative_to(ROOT)) != NEEDS_BROWSER]


def pytest_options() -> list[str]:
    options = ["-p", "no:cacheprovider"]
    if importlib.util.find_spec("pytest_timeout") is None:
        options += ["-o", "addopts=-q", "-W", "ignore::pytest.PytestUnknownMarkWarning"]
    registered = importlib.metadata.entry_points(group="pytest11")
    if "sawbones" not in registered.names:  # no package is installed, only its source is there
        options += ["-p", "sawbones.integrations.pytest_plugin"]
    return options


def missing_package(text: str) -> str | None:
    for name in re.findall(r"No module named '(\w+)", text):
        if name != "sawbones" and importlib.util.find_spec(name) is None:
            return str(name)
    return None


def outcomes(file: str, options: list[str], limit_s: float, folder: Path) -> list[Outcome]:
    report = folder / (file.replace("/", "-") + ".xml")
    command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", file]
    began = time.monotonic()
    try:
        said = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s
        ).stdout
    except subprocess.TimeoutExpired:
        return [Outcome(file, "failed", limit_s, f"ran out of its {limit_s:g} seconds")]
    if not report.exists():
        return [Outcome(file, "failed", time.monotonic() - began, said[-1500:])]
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{file}::{case.get('name')}"
        seconds = float(case.get("time") or 0)
        wrong = [part for part in case if part.tag in ("failure", "error", "skipped")]
        text = "\n".join(f"{part.get('message')}\n{part.text}" for part in wrong)
        package = missing_package(text)
        if not wrong:
            found.append(Outcome(name, "passed", seconds))
        elif all(part.tag == "skipped" for part in wrong):
            found.append(Outcome(name, "skipped", seconds, str(wrong[0].get("message"))))
        elif package is not None:
            found.append(Outcome(name, "left out", seconds, f"{package} is not installed"))
        else:
            found.append(Outcome(name, "failed", seconds, text))
    return found


def versions() -> str:
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"Python {platform.python_version()}, torch {torch.__version__}, {device}"


def commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return found.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="files of tests (default: those of .ci/matrix)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=200, help="seconds for each file")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ |= {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    began, options = time.monotonic(), pytest_options()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        files = given.files or quick_files()
        each = pool.map(lambda f: outcomes(f, options, given.limit, Path(folder)), files)
        seen = [one for found in each for one in found]
    minutes = (time.monotonic() - began) / 60
    numbers = Counter(one.result for one in seen)
    told = ", ".join(f"{number} {result}" for result, number in sorted(numbers.items()))
    lines = [
        f"# Python and torch: {time.strftime('%Y-%m-%d')}, {commit()}, {platform.machine()}",
        "",
        f"{versions()}, {os.cpu_count()} cores: {told}; {minutes:.1f} minutes.",
        "",
    ]
    reasons = Counter(f"{o.result}: {o.why}" for o in seen if o.result in ("skipped", "left out"))
    lines += [f"- {number} {reason}" for reason, number in sorted(reasons.items())]
    slowest = sorted(seen, key=lambda one: -one.seconds)[:10]
    lines += ["", "Slowest:", *(f"- {one.seconds:.0f} s {one.test}" for one in slowest)]
    failed = [one for one in seen if one.result == "failed"]
    lines += ["", "Failed:", *(f"- {one.test}" for one in failed)] if failed else []
    if given.out is not None:
        given.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    for one in failed:
        lines += ["", f"== {one.test}", one.why[-3000:]]
    print("\n".join(lines))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
