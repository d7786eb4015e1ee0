"""The texts of regression tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT_LINE = "ROOT = Path.cwd()  # the folder that the script is started in\n"


@dataclass(frozen=True)
class Story:
    fault: str
    title: str
    where: tuple[str, ...]
    script: str
    argv: tuple[str, ...]
    told: str = "Fault "  # what stands before its name

    @property
    def heading(self) -> str:
        return f"{self.told}{self.fault}"

    @property
    def name(self) -> str:
        return f"test_{self.fault.replace('.', '_').replace('-', '_')}"

    @property
    def docstring(self) -> str:
        title = self.title.replace("\\", "/").replace('"""', "'''")
        place = f" at {', '.join(self.where)}" if self.where else ""
        return (
            f'"""{title}\n\n{self.heading}{place}. Fails while it is there, passes once it is '
            'gone.\n"""\n\n'
        )

    @property
    def arguments(self) -> str:
        return ", ".join(_quoted(text) for text in (self.script, *self.argv))


def _quoted(text: str) -> str:
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown.startswith("'") and '"' not in shown else shown


def observed(story: Story, assertion: str, call: str, options: Mapping[str, Any]) -> str:
    settings = "".join(f", {name}={value!r}" for name, value in options.items())
    names = ", ".join(sorted((assertion, "observe")))
    return (
        f"{story.docstring}from pathlib import Path\n\nfrom sawbones.testing import {names}\n\n{ROOT_LINE}\n\n"
        f"def {story.name}():\n"
        f"    run = observe({story.arguments}, root=ROOT{settings})\n"
        f"    {call}\n"
    )


def diagnosed(story: Story, steps: int | None, ranks: int) -> str:
    settings = (f", steps={steps}" if steps else "") + (f", num_ranks={ranks}" if ranks > 1 else "")
    return (
        f"{story.docstring}from pathlib import Path\n\nimport sawbones\n\n{ROOT_LINE}\n\n"
        f"def {story.name}():\n"
        f"    session = sawbones.diagnose({story.arguments}, working_folder=ROOT, only={_quoted(story.fault)}{settings})\n"
        '    assert [f.title for f in session.report.findings if f.status != "suspected"] == []\n'
    )


def captured(story: Story, bundle: str) -> str:
    return (
        f"{story.docstring}from pathlib import Path\n\nfrom sawbones.testing import assert_mended\n\n{ROOT_LINE}\n\n"
        f"def {story.name}():\n"
        f"    assert_mended(Path(__file__).parent / {_quoted(bundle)}, root=ROOT)\n"
    )


_FINITE = """
def finite(optimizer, *args):
    for i, group in enumerate(optimizer.param_groups):
        for j, p in enumerate(group["params"]):
            bad = 0 if p.grad is None else int((~torch.isfinite(p.grad)).sum())
            name = f"parameter {{j}} {{tuple(p.shape)}} of group {{i}}"
            assert not bad, f"step {{steps}}: {{bad}} of {{p.numel()}} gradients of {{name}} are not finite"

register_optimizer_step_pre_hook(finite)
"""

_PLAIN = '''{docstring}import shutil
import subprocess
import sys
from pathlib import Path

{root}
HARNESS = """
import os, runpy, sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

steps = 0

def count(*args):
    global steps
    steps += 1
    if steps == {steps}:
        sys.stderr.flush()
        os._exit(0)  # far enough: the fault would have shown
{finite}
register_optimizer_step_post_hook(count)
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[1]))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def {name}(tmp_path):
    # In a copy: nothing that the script writes is kept.
    work = shutil.copytree(ROOT, tmp_path / "work", symlinks=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    done = subprocess.run([sys.executable, "-c", HARNESS, {arguments}], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
'''


def plain(story: Story, steps: int, gradients: bool) -> str:
    finite = _FINITE.format() if gradients else ""
    return _PLAIN.format(
        docstring=story.docstring,
        root=ROOT_LINE,
        steps=steps,
        finite=finite,
        name=story.name,
        arguments=story.arguments,
    )


def rooted(text: str, root: Path, folder: Path) -> str:
    """The same test for a file in `folder`: it finds the script's folder from its own place, or by
    its full path.
    """
    root, folder = root.resolve(), folder.resolve()
    inside = folder == root or root in folder.parents
    depth = len(folder.relative_to(root).parts) if inside else 0
    found = (
        f"Path(__file__).resolve().parents[{depth}]"
        if inside
        else f"Path({_quoted(os.fspath(root))})"
    )
    return text.replace(ROOT_LINE, f"ROOT = {found}  # the folder that the script is started in\n")
