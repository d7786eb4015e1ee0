"""The commands of tutorial and how-to pages, run as they stand, each page in a folder of its own.

    python docs/walk_through.py tutorial/first-diagnosis.md            with the sawbones of PATH
    python docs/walk_through.py                                        every page
    python docs/walk_through.py --list                                 what is left out, and why

A page's own files (code blocks that begin with `# name.py`) are written first; where it brings no
train.py, a small one with a missing zero_grad stands in. Names of runs and bundles that only the
page's author has are those of a run that was made before. A command fails by status 2, by a
traceback of ours, or by taking too long.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
LIMIT_S = 400
TRAIN = """import sys, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(160, 4)
y = (x @ torch.tensor([1.0, -2.0, 0.5, 0.0]) > 0).long()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(40):
    rows = torch.arange(16) + 16 * (step % 10)
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    if step == 30 and "--spoil" in sys.argv:
        loss = loss / 0
    loss.backward()
    optimizer.step()
print(loss.item())
"""
BEFORE = (
    "sawbones run --quiet --out .sawbones/train train.py",
    "sawbones run --quiet --out .sawbones/good train.py",
    "sawbones run --quiet --out .sawbones/bad train.py --spoil",
    "sawbones diagnose --quiet --no-experiments --json report.json train.py || true",
    "sawbones query --format csv .sawbones/train 'select step, loss from steps' > metrics.csv",
    "cp .sawbones/bad/bundles/step-*.sawbones step-000412.sawbones || true",
)
# What only the author of a page has, and what stands for it here.
STANDS_FOR = (
    (r"\.sawbones/\.\.\./bundles/step-\d+\.sawbones", "step-000412.sawbones"),
    (r"\.sawbones/(train-\d[\d-]*|\.\.\.)(?=\s|$)", ".sawbones/train"),
    (r"\bRUN\b", ".sawbones/train"),
    (r"files:/data/cache", "files:cache"),
)
LEFT_OUT = {
    "example.org": "posts to a host that is not there",
    "notify-send": "needs a desktop",
    "attach PID": "needs a process that hangs",
    "torchrun": "starts processes for two ranks: tests/observe/test_spawned.py",
    "--nproc-per-node": "starts processes for two ranks: tests/cli/test_ranks.py",
    "tensorboard": "needs an extra",
    "pip install": "needs an index",
    "practise": "asks the reader: tests/practise",
    "sides:": "two models of the reader's: tests/parity",
    "train.ipynb": "a notebook of the reader's: tests/integrations/test_notebooks.py",
    "/path/to/project": "a folder of the reader's: tests/integrations/test_mcp.py",
    "offline-run": "what another tool has logged: make trackers",
    "mlflow.db": "what another tool has logged: make trackers",
}


@dataclass(frozen=True)
class Step:
    line: int
    command: str

    @property
    def why_left_out(self) -> str:
        return next((why for word, why in LEFT_OUT.items() if word in self.command), "")


def steps_of(page: Path) -> list[Step]:
    """Indented lines that begin with a command; what Sawbones prints begins with `sawbones: `."""
    found = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        match = re.match(r"    ((?:sawbones|torchrun|pip install) .*)$", line)
        if match is not None:
            found.append(Step(number, re.sub(r"\s{2,}#.*$", "", match[1]).strip()))
    return found


def files_of(page: Path) -> dict[str, str]:
    text = page.read_text(encoding="utf-8")
    found = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, flags=re.DOTALL))
    if page.parent.name == "tutorial":
        (found["train.py"],) = re.findall(
            r"```python\n(import torch\n.*?)```", text, flags=re.DOTALL
        )
    return found


def run(command: str, folder: Path) -> tuple[int, str]:
    environment = {**os.environ, "HOME": str(folder), "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    if command.startswith("sawbones page"):
        command = f"timeout --signal=INT 8 {command}; [ $? -eq 124 ] || [ $? -eq 130 ]"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout


def walk(page: Path) -> list[str]:
    """What went wrong on a page."""
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = files_of(page)
        (folder / "cache").mkdir()
        (folder / ".local/share/bash-completion/completions").mkdir(parents=True)
        for name, text in {"train.py": TRAIN, **files}.items():
            (folder / name).write_text(text, encoding="utf-8")
        steps = [step for step in steps_of(page) if not step.why_left_out]
        for command in BEFORE if steps and "train.py" not in files else ():
            run(command, folder)
        for step in steps:
            command = step.command
            for pattern, stands in STANDS_FOR:
                command = re.sub(pattern, stands, command)
            began = time.monotonic()
            status, said = run(command, folder)
            took = f"{time.monotonic() - began:.0f} s"
            bad = status == 2 or status > 4 or "sawbones/cli/main.py" in said
            mark = "FAILED" if bad else "ok"
            print(f"{mark:6} {page.name}:{step.line} [{status}, {took}] {command}", flush=True)
            if bad:
                wrong.append(f"{page.name}:{step.line}: {command}\n{said[-1500:]}")
    return wrong


def main() -> int:
    every = [*sorted((DOCS / "tutorial").glob("*.md")), *sorted((DOCS / "how-to").glob("*.md"))]
    if "--list" in sys.argv:
        for page in every:
            for step in (step for step in steps_of(page) if step.why_left_out):
                print(f"{page.name}:{step.line}: {step.command}: {step.why_left_out}")
        return 0
    pages = [DOCS / name for name in sys.argv[1:]] or every
    wrong = [text for page in pages for text in walk(page)]
    print("\n\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
