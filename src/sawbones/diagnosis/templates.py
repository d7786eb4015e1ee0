"""The texts of regression tests.

Names of files, arguments and messages may come from a stranger's recording. They enter a test as
`repr` or as one line of a docstring, and read_back.py compares what was made with what was meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.masking import MASK, mask, mask_arguments, shown_line
from sawbones.masking.names import words_of

ROOT_LINE = "ROOT = Path.cwd()  # the folder that the script is started in\n"


@dataclass(frozen=True)
class Frame:
    """What all tests have: source code, checked or made by `repr`."""

    docstring: str
    name: str
    arguments: str  # of the script's call, its own name first

    @property
    def imports_os(self) -> str:
        return "import os\n" if "os.environ[" in self.arguments else ""


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
        return f"{self.told}{_one_line(self.fault)}"

    @property
    def name(self) -> str:
        return "test_" + re.sub(r"[^A-Za-z0-9]", "_", self.fault)

    @property
    def frame(self) -> Frame:
        place = f" at {', '.join(map(_one_line, self.where))}" if self.where else ""
        argv = mask_arguments(self.argv)
        secrets = [name for name in _masked_names(argv) if name is not None]
        given = (
            f" Give it what was masked: {' '.join(f'{n}=...' for n in secrets)} pytest ..."
            if secrets
            else ""
        )
        docstring = (
            f"{_one_line(self.title)}\n\n{self.heading}{place}. Fails while it is there, passes "
            f"once it is gone.{given}\n"
        )
        return Frame(docstring, self.name, arguments(self.script, argv))


def _one_line(text: str) -> str:
    """For a docstring: nothing in it ends the string, the line, or means something else."""
    return shown_line(text).replace("\\", "/").replace('"', "'")


def arguments(script: str, argv: Sequence[str]) -> str:
    """A masked value is read from the environment when the test runs."""
    code = [quoted(mask(script))]
    for text, name in zip(argv, _masked_names(argv), strict=True):
        code.append(quoted(text) if name is None else _from_environment(text, name))
    return ", ".join(code)


def _masked_names(argv: Sequence[str]) -> list[str | None]:
    """The environment variable that stands for each argument, None where nothing was masked."""
    names: list[str | None] = []
    for index, text in enumerate(argv):
        before = text.partition("=")[0] if "=" in text else (argv[index - 1] if index else "")
        words = words_of(before) if before.startswith("-") or "=" in text else ()
        name = "_".join(words).upper()
        usable = re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) is not None
        names.append((name if usable else f"ARGUMENT_{index + 1}") if MASK in text else None)
    return names


def _from_environment(text: str, name: str) -> str:
    before, _, after = text.partition(MASK)
    parts = [quoted(before)] if before else []
    parts.append(f"os.environ[{quoted(name)}]")
    parts += [quoted(after)] if after else []
    return " + ".join(parts)


def quoted(text: str) -> str:
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown.startswith("'") and '"' not in shown else shown


def _head(frame: Frame) -> str:
    return f'"""{frame.docstring}"""\n\n{frame.imports_os}from pathlib import Path\n\n'


def observed(frame: Frame, assertion: str, call: str, options: Mapping[str, Any]) -> str:
    settings = "".join(f", {name}={value!r}" for name, value in options.items())
    names = ", ".join(sorted((assertion, "observe")))
    return (
        f"{_head(frame)}from sawbones.testing import {names}\n\n{ROOT_LINE}\n\n"
        f"def {frame.name}():\n"
        f"    run = observe({frame.arguments}, root=ROOT{settings})\n"
        f"    {call}\n"
    )


def diagnosed(frame: Frame, fault: str, steps: int | None, ranks: int) -> str:
    settings = (f", steps={steps}" if steps else "") + (f", num_ranks={ranks}" if ranks > 1 else "")
    return (
        f"{_head(frame)}import sawbones\n\n{ROOT_LINE}\n\n"
        f"def {frame.name}():\n"
        f"    session = sawbones.diagnose({frame.arguments}, working_folder=ROOT, "
        f"only={quoted(fault)}{settings})\n"
        '    assert [f.title for f in session.report.findings if f.status != "suspected"] == []\n'
    )


def captured(frame: Frame, bundle: str, sha256: str) -> str:
    return (
        f"{_head(frame)}from sawbones.testing import assert_mended\n\n{ROOT_LINE}\n\n"
        f"def {frame.name}():\n"
        f"    bundle = Path(__file__).parent / {quoted(bundle)}\n"
        f"    assert_mended(bundle, root=ROOT, sha256={quoted(sha256)})\n"
    )


_FINITE = """
def finite(optimizer, *args):
    for i, group in enumerate(optimizer.param_groups):
        for j, p in enumerate(group["params"]):
            bad = 0 if p.grad is None else int((~torch.isfinite(p.grad)).sum())
            name = f"parameter {j} {tuple(p.shape)} of group {i}"
            assert not bad, f"step {steps}: {bad} of {p.numel()} gradients of {name} are not finite"

register_optimizer_step_pre_hook(finite)
"""

_HARNESS = """
import os, runpy, sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

steps = 0

def count(*args):
    global steps
    steps += 1
    if steps == STEPS:
        sys.stderr.flush()
        os._exit(0)  # far enough: the fault would have shown
FINITE
register_optimizer_step_post_hook(count)
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[1]))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def harness(steps: int, gradients: bool) -> str:
    """What a plain test runs around the script."""
    return _HARNESS.replace("STEPS", str(steps)).replace("FINITE\n", _FINITE if gradients else "\n")


def plain(frame: Frame, steps: int, gradients: bool) -> str:
    return (
        f'"""{frame.docstring}"""\n\n{frame.imports_os}import shutil\nimport '
        "subprocess\nimport sys\n"
        f"from pathlib import Path\n\n{ROOT_LINE}\n"
        f'HARNESS = """{harness(steps, gradients)}"""\n\n\n'
        f"def {frame.name}(tmp_path):\n"
        "    # In a copy: nothing that the script writes is kept.\n"
        '    ignored = shutil.ignore_patterns(".*", "__pycache__")\n'
        '    work = shutil.copytree(ROOT, tmp_path / "work", symlinks=True, ignore=ignored)\n'
        f'    command = [sys.executable, "-c", HARNESS, {frame.arguments}]\n'
        "    done = subprocess.run(command, cwd=work, capture_output=True, text=True)\n"
        "    assert done.returncode == 0, done.stderr[-3000:]\n"
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
        else f"Path({quoted(os.fspath(root))})"
    )
    return text.replace(ROOT_LINE, f"ROOT = {found}  # the folder that the script is started in\n")
