"""From a finding to a regression test: fails while the fault is in the code, passes once it is
gone.

The most direct form that fails on the run at hand is taken:

- plain: the script in a child process, for a crash or a value that is not finite. Needs pytest and
  torch alone.
- property: the recording of a few steps and one assertion of sawbones.testing, as testing/pins.py
  names it.
- check: the same recording, read by the fault's own check.
- diagnose: the whole session again, where the checks see nothing in the run at hand.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import sawbones.testing
from sawbones import faults
from sawbones.capture.bundle import SUFFIX, Bundle
from sawbones.diagnosis import templates
from sawbones.diagnosis.read_back import is_ours
from sawbones.masking import mask
from sawbones.schema import Finding, Run
from sawbones.schema import faults as known_faults
from sawbones.schema.errors import SawbonesError
from sawbones.testing.pins import PINS, Pin

STEPS = (3, 5, 10, 20, 30, 45, 60, 80, 120, 160, 250, 400)
NEAR_SECONDS = (
    120.0  # of the captured run, up to the step: as long as that a test may take to get there
)
COPIED_BYTES = (
    64 << 20
)  # a plain test copies the working folder; beyond this the scratch copy of observe is cheaper
COPIED_FILES = 5000
_SKIPPED = (".git", "__pycache__", "node_modules")


@dataclass(frozen=True)
class Pinned:
    fault: str
    kind: str  # plain, property, check, diagnose
    text: str

    @property
    def file_name(self) -> str:
        return f"test_{self.fault.replace('.', '_').replace('-', '_')}.py"


def pin(finding: Finding, run: Run, root: Path) -> Pinned:
    """The test of one finding, for the script as it was run in `root`."""
    story = templates.Story(
        finding.fault,
        finding.title,
        tuple(str(site) for site in finding.where[:2]),
        run.script,
        run.argv,
    )
    plain = _plain(finding, run, root)
    if plain is not None:
        return Pinned(finding.fault, "plain", templates.plain(story.frame, *plain))
    known = PINS.get(finding.fault)
    if known is not None:
        steps = steps_needed(known, run)
        if steps is not None:
            steps = _whole(run) if known.whole else steps
            call = f"{known.assertion}(run{', ' + known.arguments if known.arguments else ''})"
            return Pinned(
                finding.fault,
                "property",
                templates.observed(story.frame, known.assertion, call, _options(run, steps, known)),
            )
    found = faults.read(run, finding.fault).findings
    if found:
        twice = Pin("", twice=finding.fault == "loop.nondeterminism")
        certain = any(f.status != "suspected" for f in found)
        call = f'assert_free_of(run, "{finding.fault}"{"" if certain else ", suspected=True"})'
        return Pinned(
            finding.fault,
            "check",
            templates.observed(
                story.frame, "assert_free_of", call, _options(run, _whole(run), twice)
            ),
        )
    return Pinned(
        finding.fault,
        "diagnose",
        templates.diagnosed(story.frame, finding.fault, _whole(run), run.world_size),
    )


def steps_needed(known: Pin, run: Run) -> int | None:
    """How many steps the assertion needs to fail on this run, None when it does not."""
    counts = sorted({*(n for n in STEPS if n < run.num_steps), max(run.num_steps, STEPS[0])})
    return next((n for n in counts if holds(known, first_steps(run, n)) is False), None)


def holds(known: Pin, run: Run) -> bool | None:
    """Whether the property is there; None when the assertion could not look."""
    names: dict[str, Any] = {"check": getattr(sawbones.testing, known.assertion), "run": run}
    try:
        eval(f"check(run, {known.arguments})", names)  # the arguments are those of our own table
    except AssertionError as error:
        return None if "nothing to read" in str(error) else False
    except (ValueError, KeyError, TypeError):
        return None
    return True


def first_steps(run: Run, steps: int) -> Run:
    """What the recording would hold if it had ended after so many steps."""
    if steps >= run.num_steps:
        return run
    seen, nonfinite = run.evaluation, run.nonfinite
    evaluation = replace(
        seen,
        active=tuple(row for row in seen.active if row.step < steps),
        passes=tuple(row for row in seen.passes if row.step < steps),
        inputs=tuple(row for row in seen.inputs if row.step < steps),
    )
    twin = run.twin_run
    if twin is not None and twin.differs is not None and twin.differs.step >= steps:
        twin = replace(twin, differs=None)
    rows_kept = run.tensor_steps < steps
    return replace(
        run,
        events=tuple(e for e in run.events if e.step < steps),
        steps={name: values[:steps] for name, values in run.steps.items()},
        tensor_steps=run.tensor_steps[rows_kept],
        statistics={name: table[rows_kept] for name, table in run.statistics.items()},
        batches=tuple(b for b in run.batches if b.step < steps),
        deep=tuple(d for d in run.deep if d.step < steps),
        ending=replace(run.ending, kind="budget") if run.ending.kind == "exception" else run.ending,
        ranks=tuple(first_steps(other, steps) for other in run.ranks),
        evaluation=evaluation,
        nonfinite=nonfinite if nonfinite and nonfinite.step < steps else None,
        twin_run=twin,
    )


def _whole(run: Run) -> int | None:
    """As far as the recording went; to the script's own end where it came there."""
    return (
        run.num_steps or None
        if run.ending.kind in ("budget", "interrupted", "terminated")
        else None
    )


def _options(run: Run, steps: int | None, known: Pin) -> dict[str, Any]:
    options: dict[str, Any] = {"steps": steps} if steps is not None else {}
    if run.world_size > 1:
        options["ranks"] = run.world_size
    if known.twice:
        options["twice"] = True
    return options


def _plain(finding: Finding, run: Run, root: Path) -> tuple[int, bool] | None:
    """(steps, look at gradients) of a test without Sawbones: for crashes, and for gradients that
    are not finite.
    """
    if run.world_size > 1 or not _is_small(root) or not (root / run.script).is_file():
        return None
    needs = next((c.needs for c in faults.all_checks() if c.fault == finding.fault), ())
    crashed = run.ending.kind == "exception" and (
        "crash" in needs or any(e.signal == "crash" for e in finding.evidence)
    )
    if crashed:
        return run.num_steps + 1, False
    if PINS.get(finding.fault, Pin("")).assertion != "assert_finite" or not run.num_steps:
        return None
    losses, norms = run.losses, run.steps.get("grad_norm", np.zeros(0))
    bad = np.flatnonzero(~np.isfinite(losses) & ~np.isfinite(norms) & (run.steps["skipped"] == 0))
    return (int(bad[0]) + 1, True) if len(bad) else None


def _is_small(root: Path) -> bool:
    total = files = 0
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [d for d in subfolders if not d.startswith(".") and d not in _SKIPPED]
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            files += 1
            if total > COPIED_BYTES or files > COPIED_FILES:
                return False
    return True


def pin_bundle(bundle: Bundle, folder: Path, root: Path) -> list[Path]:
    """The test of a captured failure. Where its step is minutes away, a copy of the bundle goes
    with it.
    """
    failure = bundle.failure
    if failure.kind == "by hand":
        raise PinRefused(
            f"{bundle.path} was captured by hand: nothing failed in it that a test could keep out"
        )
    if failure.kind == "rank mismatch" and bundle.state.get("point") != "hang":
        raise PinRefused(
            f"{bundle.path} is about ranks that differ, which no single step shows. Pin "
            "the finding: "
            f"sawbones diagnose --pin tests --nproc-per-node {bundle.world_size} {bundle.script}"
        )
    stem = re.sub(r"[^A-Za-z0-9]", "_", Path(bundle.script).stem)[:60]
    name = f"step-{bundle.step:06d}-of-{stem}"
    where = (str(failure.site),) if failure.site is not None else ()
    story = templates.Story(name, failure.text, where, bundle.script, bundle.argv, "Captured at ")
    folder.mkdir(parents=True, exist_ok=True)
    near = bool(bundle.steps) and float(bundle.steps[-1].get("time", 0.0)) < NEAR_SECONDS
    whole = bundle.world_size == 1 and (root / bundle.script).is_file() and _is_small(root)
    if near and whole and failure.kind in ("exception", "nonfinite loss", "nonfinite gradient"):
        steps = bundle.step + 1
        text, extra = templates.plain(story.frame, steps, failure.kind != "exception"), []
    else:
        kept = folder / f"{name}{SUFFIX}"
        if kept.resolve() != bundle.path.resolve():
            shutil.copyfile(bundle.path, kept)
        text, extra = templates.captured(story.frame, kept.name, bundle.sha256), [kept]
    return [_write(folder / f"{story.name}.py", text, story.heading, root), *extra]


def write_tests(findings: Sequence[Finding], folder: Path, root: Path) -> list[Path]:
    """One file per finding that has a test. A file of the same name that is not such a test is left
    alone, with an error.
    """
    unknown = [f.fault for f in findings if f.fault not in known_faults()]
    if unknown:
        raise PinRefused(
            f"{unknown[0][:80]!r} is no fault that Sawbones knows: nothing was written"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _write(folder / Pinned(f.fault, "", "").file_name, f.test, f"Fault {f.fault}", root)
        for f in findings
        if f.test is not None
    ]


def _write(path: Path, text: str, heading: str, root: Path) -> Path:
    if path.exists() and heading not in path.read_text(encoding="utf-8", errors="replace"):
        raise PinRefused(
            f"{path} exists and is not a test that was pinned here ({heading}). Write "
            "elsewhere: --out DIR"
        )
    text = mask(text)
    if not is_ours(text):
        raise PinRefused(
            f"{path.name} was not written: its text is not one that `sawbones pin` makes "
            f"({heading}). "
            "A report by another version, or one that was changed by hand? Pin the run "
            "folder instead"
        )
    path.write_text(templates.rooted(text, root, path.parent), encoding="utf-8")
    return path


class PinRefused(SawbonesError):
    """A test that could not be written."""
