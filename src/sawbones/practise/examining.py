"""What the grader runs for an answer: the broken script and its twin, the answer's command twice, its
trials, its patch and its test.
"""

from __future__ import annotations

import ast
import hashlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sawbones import faults
from sawbones.fixing.source import Source
from sawbones.observe.options import diagnosing
from sawbones.practise.answers import Answer
from sawbones.practise.exercises import Exercise
from sawbones.practise.grading import Trials
from sawbones.practise.measuring import Measured, bench_for, measure, shows
from sawbones.practise.patching import DoesNotApply, patched
from sawbones.trials.bench import Bench, ChildFailed
from sawbones.trials.menu import NoSuchTrial, parse

Say = Callable[[str], None]
LONGEST_COMMAND = 300.0  # seconds


def examine(exercise: Exercise, answer: Answer, folder: Path, say: Say) -> Trials:
    with examiner(exercise, folder, say) as trials_for:
        return trials_for(answer)


@contextmanager
def examiner(exercise: Exercise, folder: Path, say: Say) -> Iterator[Callable[[Answer], Trials]]:
    """Several answers to one exercise: what they share is run once."""
    with tempfile.TemporaryDirectory(prefix="practise-") as scratch:
        root = Path(scratch) / "work"
        _copy(folder, root, exercise.broken)
        with bench_for(root, exercise.broken.file) as bench:
            say("measuring the script, and the same without its faults")
            broken = measure(bench, exercise.broken, diagnosing())
            good = broken
            if exercise.faults:
                good = measure(bench, exercise.healthy, diagnosing())
            repeated: dict[str, tuple[bool | None, str]] = {}
            outcomes: dict[str, str] = {}

            def trials_for(answer: Answer) -> Trials:
                if answer.command not in repeated:
                    repeated[answer.command] = _repeats(exercise, answer.command, folder, say)
                _try_claims(bench, broken, answer, outcomes, say)
                heals, mended, note = _heals(bench, exercise, answer, broken, good, say)
                told = None
                if mended is not None:
                    told = _test_tells(Path(scratch), root, exercise.broken, mended, answer.test)
                text = mended.text if mended is not None else exercise.broken.text
                repeats, why_not = repeated[answer.command]
                return Trials(broken, good, repeats, why_not, heals, text, note, told, outcomes)

            yield trials_for


def _copy(folder: Path, root: Path, script: Source) -> None:
    """The exercise as it was given: what the person has tried in train.py does not count."""
    shutil.copytree(folder, root, ignore=shutil.ignore_patterns(".sawbones", "__pycache__"))
    (root / script.file).write_bytes(script.raw)


def _repeats(exercise: Exercise, command: str, folder: Path, say: Say) -> tuple[bool | None, str]:
    words = shlex.split(command)
    if not words:
        return None, "no command is given"
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    say(f"running `{command}` twice")
    prints = []
    with tempfile.TemporaryDirectory(prefix="practise-") as scratch:
        root = Path(scratch) / "work"
        for _ in range(2):  # at the same path: tracebacks name it
            shutil.rmtree(root, ignore_errors=True)
            _copy(folder, root, exercise.broken)
            before = set(root.rglob("*"))
            try:
                done = subprocess.run(
                    words, cwd=root, capture_output=True, text=True, timeout=LONGEST_COMMAND
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return None, f"the command does not run: {error}"
            written = sorted(p for p in set(root.rglob("*")) - before if _counts(p))
            files = {
                p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
                for p in written
            }
            prints.append((done.returncode, done.stdout, files))
    if prints[0] == prints[1]:
        return True, ""
    differ = [
        name
        for name, one, other in zip(("exit status", "output", "files"), *prints, strict=True)
        if one != other
    ]
    return False, f"two runs of the command differ in {', '.join(differ)}"


def _counts(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and ".sawbones" not in path.parts


def _try_claims(
    bench: Bench, broken: Measured, answer: Answer, found: dict[str, str], say: Say
) -> None:
    for claim in answer.claims:
        if not claim.is_trial or claim.trial in found:
            continue
        found[claim.trial] = "open"
        if broken.run is None:
            continue
        say(f"trying {claim.trial}")
        try:
            (asked,) = parse(claim.trial)
            bench.baseline = broken.run
            found[claim.trial] = asked.run(bench, broken.run).outcome
        except NoSuchTrial:
            found[claim.trial] = "no such trial"
        except ChildFailed:
            pass


def _heals(
    bench: Bench, exercise: Exercise, answer: Answer, broken: Measured, good: Measured, say: Say
) -> tuple[bool | None, Source | None, str]:
    if not answer.fix.strip():
        return None, None, ""
    try:
        mended = patched(exercise.broken, answer.fix)
    except DoesNotApply as error:
        return None, None, f"the patch does not apply: {error}"
    if ast.dump(mended.tree) == ast.dump(exercise.healthy.tree):
        return True, mended, "the patched program is the healthy one, statement by statement"
    say("running it with the patch")
    after = measure(bench, mended, diagnosing())
    if after.crashed:
        return False, mended, f"the patched script crashes: {after.error}"
    ill = sorted(after.symptoms - good.symptoms)
    if ill:
        return False, mended, f"the patched script still shows {', '.join(ill)}"
    left = sorted(_firing(after) & set(exercise.faults))
    if left:
        return False, mended, f"{', '.join(left)} still fires on the patched script"
    if shows(after, good) and not _firing(broken) & set(exercise.faults):
        return False, mended, "the patched script does not end where the healthy one does"
    return True, mended, "the patched script runs, nothing is ill, and the check is silent"


def _firing(measured: Measured) -> set[str]:
    found = faults.read(measured.run).findings if measured.run is not None else ()
    return {finding.fault for finding in found if finding.status != "suspected"}


def _test_tells(
    scratch: Path, root: Path, broken: Source, mended: Source, test: str
) -> bool | None:
    if not test.strip():
        return None
    root = shutil.copytree(root, scratch / "tested", dirs_exist_ok=True)
    (root / "test_answer.py").write_text(test, encoding="utf-8")
    passed = []
    for version in (broken, mended):
        (root / broken.file).write_bytes(version.raw)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "test_answer.py",
            ],
            cwd=root,
            capture_output=True,
            timeout=LONGEST_COMMAND,
        )
        passed.append(done.returncode)
    return passed == [1, 0]
