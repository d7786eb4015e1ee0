"""The walk of the architecture page is true: its files exist, and one run passes through them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
WALK = PAGE.split("## One fault, from the hook to the terminal")[1]
NAMED = list(dict.fromkeys(re.findall(r"`([\w/]+\.py)`", WALK)))

TRACER = """
import os, sys, threading
own = {root!r}
seen = set()

def note(frame, event, arg):
    name = frame.f_code.co_filename
    if name.startswith(own):
        seen.add(name[len(own) + 1:])

sys.setprofile(note)
threading.setprofile(note)
from sawbones.cli.main import main
try:
    main({args!r})
except SystemExit:
    pass
sys.setprofile(None)
print("\\n".join(sorted(seen)))
"""


def test_the_walk_names_at_most_fifteen_files_that_exist() -> None:
    assert 10 <= len(NAMED) <= 15
    assert all((ROOT / "src" / "sawbones" / name).is_file() for name in NAMED)


def test_a_diagnosis_passes_through_the_files_behind_the_recording(tmp_path: Path) -> None:
    lab = ROOT / "src" / "sawbones" / "faults" / "model" / "wrong_gradient" / "lab.py"
    (tmp_path / "train.py").write_text(lab.read_text(encoding="utf-8"), encoding="utf-8")
    args = ["diagnose", "--no-experiments", "--steps", "6", "train.py"]
    code = TRACER.format(root=str(ROOT / "src" / "sawbones"), args=args)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert "model.wrong-gradient" in done.stdout, done.stderr
    passed = set(done.stdout.splitlines())
    # The first four work in the child, in which the script runs; limits only hold numbers.
    in_child = {
        "observe/hooks/own_gradients.py",
        "properties/gradient.py",
        "observe/recorder.py",
        "store/writer.py",
    }
    assert set(NAMED) - in_child - {"schema/run.py"} <= passed | {"evidence/limits/gradients.py"}
