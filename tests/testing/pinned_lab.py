"""A patient of the lab, its pinned test, and the same test on the mended script."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from sawbones import faults
from sawbones.diagnosis.pinning import Pinned, pin
from sawbones.diagnosis.templates import rooted
from sawbones.lab.ward import Bed
from sawbones.schema import Evidence, Finding, Run
from sawbones.testing import observe

STEPS = (
    12,
    60,
    None,
)  # the first after which the fault can be pinned by something cheaper than a whole session


@dataclass(frozen=True)
class Case:
    pinned: Pinned
    broken: str | None  # what the test says of the broken script, None when it passes
    mended: str | None


def pinned_by(bed: Bed, folder: Path) -> Pinned:
    shutil.copy(bed.script, folder)
    twice = "twin_run" in next((c.needs for c in faults.all_checks() if c.fault == bed.fault), ())
    for steps in STEPS:
        run = observe(bed.script.name, steps=steps, root=folder, ranks=bed.num_ranks, twice=twice)
        pinned = pin(finding_of(bed, run), replace(run, script=bed.script.name), folder)
        if pinned.kind != "diagnose":
            break
    return pinned


def finding_of(bed: Bed, run: Run) -> Finding:
    """What its check says; where an experiment would have to decide first, a stand-in: how to pin
    it does not depend on it.
    """
    found = [f for f in faults.read(run, bed.fault).findings if f.fault == bed.fault]
    return (
        found[0]
        if found
        else Finding(bed.fault, "proven", 1.0, bed.summary, (), (Evidence("", ""),))
    )


def mend(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.count("patient = admit()\n") == 1
    script.write_text(
        text.replace("patient = admit()\n", "patient = admit()\npatient.broken = False\n"),
        encoding="utf-8",
    )


def said(pinned: Pinned, root: Path, folder: Path) -> str | None:
    """Executes the test as pytest would, without starting it again for each."""
    file = folder / pinned.file_name
    file.write_text(rooted(pinned.text, root, folder), encoding="utf-8")
    names: dict[str, object] = {"__file__": str(file)}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
    test = names[file.stem]
    try:
        test(tmp_path=_fresh(folder)) if pinned.kind == "plain" else test()  # type: ignore[operator]
    except AssertionError as error:
        return str(error) or "failed"
    return None


def _fresh(folder: Path) -> Path:
    made = folder / f"tmp-{len(list(folder.iterdir()))}"
    made.mkdir()
    return made


def examine(bed: Bed, folder: Path) -> Case:
    root, tests = folder / "work", folder / "tests"
    root.mkdir()
    tests.mkdir()
    pinned = pinned_by(bed, root)
    broken = said(pinned, root, tests)
    mend(root / bed.script.name)
    return Case(pinned, broken, said(pinned, root, tests))
