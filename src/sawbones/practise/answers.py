"""An answer: a file in the exercise's folder, or flags; and what is wrong with it before anything is run."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from sawbones.practise.claims import Claim, parse
from sawbones.schema import fault
from sawbones.schema.errors import SawbonesError

FILE = "answer.toml"
LEAST_WORDS = 6  # of a text, which is no name of a file
TEMPLATE = """# Your answer. Grade it: sawbones practise answer
# The cause, as an id of `sawbones faults`; several as ["a", "b"]; "none" where the script is healthy.
fault = ""
line = 0                        # of train.py; several as [12, 40]
because = ""                    # one or two sentences

# What you measured. Each is measured again; one that is true of this script and not of a healthy
# one, and trials that separate the suspects, count most. For example:
#   claims = ["loss@last > 1.2", "grad_norm@12 > 40", "try lr=0.1 does not heal"]
# All of the grammar: sawbones practise answer --grammar
claims = []

command = "python train.py"     # runs again, twice, and has to give the same metrics and checkpoint
fix = ""                        # a patch file, e.g. fix.patch (diff -u train.py mended.py > fix.patch)
test = ""                       # a pytest file that fails on train.py and passes on the mended one
report = ""                     # a file or the text, at most 500 words: symptom, reproduction, evidence, cause, fix, prevention
"""


class NoAnswer(SawbonesError):
    """An answer that cannot be graded as it is."""


@dataclass(frozen=True)
class Answer:
    faults: tuple[str, ...] = ()  # none: the script is called healthy
    lines: tuple[int, ...] = ()
    because: str = ""
    claims: tuple[Claim, ...] = ()
    command: str = "python train.py"
    fix: str = ""  # the text of the patch
    test: str = ""  # the text of the test
    report: str = ""
    notes: tuple[str, ...] = field(default=())


def from_file(folder: Path) -> dict[str, object]:
    path = folder / FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NoAnswer(f"{path} cannot be read: {error}") from error


def answer(folder: Path, given: dict[str, object]) -> Answer:
    """`given` wins over the file."""
    known = from_file(folder) | {name: value for name, value in given.items() if value}
    named = [str(one) for one in _several(known.get("fault"))]
    if not named:
        raise NoAnswer(
            f"no fault is named. Fill in {folder / FILE}, or: sawbones practise answer --fault "
            "loop.no-step --line 40. A script that is healthy: --fault none"
        )
    faults = tuple(fault(one).id for one in named if one != "none")
    return Answer(
        faults,
        tuple(int(str(line)) for line in _several(known.get("line")) if line),
        str(known.get("because", "")),
        tuple(parse(str(text)) for text in _several(known.get("claims"))),
        str(known.get("command") or "python train.py"),
        _text(folder, "fix", known.get("fix")),
        _text(folder, "test", known.get("test")),
        _text(folder, "report", known.get("report")),
    )


def _several(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return [one for one in value if one]
    return [value] if value else []


def _text(folder: Path, part: str, given: object) -> str:
    """Of the file that is named; a text of several lines or a whole sentence stands for itself."""
    if not given:
        return ""
    name = str(given)
    if len(name.split()) >= LEAST_WORDS or "\n" in name.strip():
        return name
    try:
        return (folder / name).read_text(encoding="utf-8")  # an absolute path stays as it is
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NoAnswer(
            f"{part}: {folder / name} cannot be read: {why}. Name a file in {folder}, or give the "
            "text itself"
        ) from error
