"""Short scripts that die, recorded in this process: what the checks see of each."""

from __future__ import annotations

import sys
import textwrap
import types
from pathlib import Path

from sawbones import faults
from sawbones.observe.launch import Session, crashed
from sawbones.observe.options import diagnosing
from sawbones.schema import Ending, Finding, Run
from sawbones.store import read_run


def died(folder: Path, source: str, name: str = "train.py") -> Run:
    """The recording of a script that an exception ends. A line that ends in `# ROOT` is the one
    that a finding has to name.
    """
    import torch

    path = folder / name
    path.write_text(textwrap.dedent(source))
    session = Session(folder / "run", name, (), diagnosing(quiet=True), str(folder), 0)
    main = types.ModuleType("__main__")
    main.__file__ = str(path)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    torch.manual_seed(0)
    session.install()
    ending = Ending("finished", 0)
    try:
        exec(compile(path.read_text(), str(path), "exec"), main.__dict__)
    except Exception as error:
        # the frame of this function is not the script's
        ending = crashed(error.with_traceback(_below(error)), session)
    finally:
        sys.modules["__main__"] = before
        session.close(ending)
    return read_run(folder / "run")


def _below(error: BaseException) -> types.TracebackType | None:
    return error.__traceback__.tb_next if error.__traceback__ is not None else None


def explanations(run: Run) -> list[Finding]:
    """Findings of the checks that read the record of a crash."""
    return [f for f in faults.read(run, strict=True).findings if f.explanation is not None]


def root_line(source: str) -> int:
    lines = textwrap.dedent(source).split("\n")
    return next(number for number, line in enumerate(lines, 1) if line.endswith("# ROOT"))


def assert_named_by_one_finding(folder: Path, source: str, fault: str, advice: str) -> None:
    """The cause, its line (marked ROOT) and the fix."""
    found = explanations(died(folder, source))
    assert [f.fault for f in found] == [fault]
    (finding,) = found
    assert root_line(source) in [site.line for site in finding.where[:2]]
    assert finding.fix is not None and advice in finding.fix.summary
    assert finding.explanation is not None and finding.explanation.got
