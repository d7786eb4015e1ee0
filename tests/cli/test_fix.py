"""sawbones fix as a user calls it: a patch in the script's own names, run before it is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from sawbones.report.json_report import report_schema

SCRIPT = """import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
X = torch.randn(256, 8)
Y = (X[:, 0] > 0).long()


class Runner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        self.opts = {"main": torch.optim.SGD(self.net.parameters(), lr=0.1)}

    def go(self):
        for i in range(60):
            k = (i * 32) % 256
            crit = F.cross_entropy(self.net(X[k : k + 32]), Y[k : k + 32])
            crit.backward()  # the gradient
            self.opts["main"].step()


Runner().go()
"""


def fix(folder: Path, *args: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "sawbones", "fix", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_a_verified_patch_is_written_and_the_original_kept(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    status, text = fix(tmp_path, "--apply", "--json", "report.json", "train.py")
    assert status == 0, text
    changed = SCRIPT.replace(
        "            crit.backward()",
        '            self.opts["main"].zero_grad()\n            crit.backward()',
    )
    assert (tmp_path / "train.py").read_text() == changed
    assert (tmp_path / ".sawbones/originals/train.py.1").read_text() == SCRIPT
    report = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(report, report_schema())
    (finding,) = [f for f in report["findings"] if f["status"] != "suspected"]
    assert (finding["fault"], finding["fix"]["level"]) == ("loop.no-zero-grad", "verified")
    assert finding["fix"]["measured"]["after"]["steps"] == 60
    told = finding["fix"]["measured"]["test"]
    assert (told["before"], told["after"]) == ("fails", "passes")
    assert '+            self.opts["main"].zero_grad()' in text


def test_wrong_calls_are_one_line(tmp_path):
    (tmp_path / "train.py").write_text("import torch\n")
    for args, says in (
        (("--apply", "--check", "train.py"), "give one of them"),
        (("--unsafe", "train.py"), "--unsafe goes with --apply"),
        (("gone.py",), "no script gone.py"),
    ):
        status, text = fix(tmp_path, *args)
        assert (status, len(text.strip().splitlines())) == (2, 1), text
        assert says in text


def test_a_read_only_or_changed_file_stays_as_it_is(tmp_path):
    import pytest

    from sawbones.fixing.editing import before
    from sawbones.fixing.proposing import Patch, changed
    from sawbones.fixing.recipes import Change
    from sawbones.fixing.source import Source
    from sawbones.fixing.writing import NotWritten, write

    path = tmp_path / "train.py"
    path.write_text("a()\n")
    source = Source.read(path, "train.py")
    change = Change("", (before(source, source.tree.body[0], "b()"),))
    patch = Patch("loop.no-step", change, changed([source], change))
    path.write_text("c()\n")
    with pytest.raises(NotWritten, match="has changed"):
        write([patch], tmp_path)
    path.write_text("a()\n")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        path.chmod(0o644)  # root may write all the same
    else:
        with pytest.raises(NotWritten, match="read-only"):
            write([patch], tmp_path)
        path.chmod(0o640)
    mode = path.stat().st_mode
    write([patch], tmp_path)
    assert (path.read_text(), path.stat().st_mode) == ("b()\na()\n", mode)
