"""sawbones replay: a captured step, executed again."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say

if TYPE_CHECKING:
    from sawbones.capture.bundle import Bundle

MOST_NOTES = 50
DESCRIPTION = """Execute a captured step again, in a new process, and compare it with what was recorded.

The model and the step are rebuilt from the source in the bundle (or, without it, from the local one) in a scratch folder:
nothing of yours is overwritten. Opening a bundle runs nothing. A bundle that your own Sawbones did not make is run only
after you have seen what it would run: --trust.
Exit status: 0 the same failure, bit for bit; 1 something else; 2 usage error or an unreadable bundle; 4 interrupted."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones replay", DESCRIPTION)
    p.add_argument(
        "--deep",
        action="store_true",
        help="trace the step: the operator that failed, with what it was given",
    )
    p.add_argument(
        "--device", choices=["cpu"], help="replay on this device instead of the recorded one"
    )
    p.add_argument(
        "--dtype",
        choices=["float64"],
        help="replay in this type: does the failure remain without rounding?",
    )
    p.add_argument(
        "--approximate",
        action="store_true",
        help="the same kind of failure is enough, the bits may differ",
    )
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=600.0,
        metavar="N",
        help="budget (default 600)",
    )
    p.add_bundle()
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.capture.bundle import read_bundle
    from sawbones.schema.errors import SawbonesError

    try:
        bundle = read_bundle(given.bundle)
        show_head(bundle)
        agree(bundle, given.trust, "replay", args)
        raise SystemExit(_replay(bundle, given))
    except SawbonesError as error:
        usage_error(str(error))


def show_head(bundle: Bundle) -> None:
    rank = f", rank {bundle.rank} of {bundle.world_size}" if bundle.world_size > 1 else ""
    say(f"{bundle.path.name}: step {bundle.step} of {bundle.script}{rank}: {bundle.failure.text}")
    for note in bundle.notes[:MOST_NOTES]:
        say(f"  note: {note[:1000]}")


def agree(bundle: Bundle, trust: bool, command: str, args: list[str]) -> None:
    """A stranger's code is not run without a word from the user, who sees what it is first."""
    from sawbones.capture.replay import what_runs
    from sawbones.capture.trust import is_trusted

    if is_trusted(bundle):
        return
    say(f"{bundle.path} was not made by your own Sawbones. It would run:", error=True)
    for line in what_runs(bundle):
        say(f"  {line}", error=True)
    if trust:
        return
    if not sys.stdin.isatty():
        usage_error(f"nothing was run. To agree: sawbones {command} --trust {shlex.join(args)}")
    if input("Run that code? [y/N] ").strip().lower() not in ("y", "yes"):
        raise SystemExit(2)


def _replay(bundle: Bundle, given: argparse.Namespace) -> int:
    from sawbones.capture.comparing import Changes
    from sawbones.capture.replay import WAYS, replay

    changes = Changes(given.device, given.dtype, given.approximate)
    found = replay(
        bundle,
        changes,
        given.deep,
        given.seconds,
        say=lambda text: say(f"sawbones: {text}", error=True),
    )
    if found.same:
        exactly = (
            "the same kind of failure"
            if given.approximate or not changes.exact
            else "the same, bit for bit"
        )
        say(f"{exactly}: {found.text}  ({found.seconds:.1f} s; {WAYS[found.way]})")
    else:
        say(f"NOT the same: {found.text}  ({found.seconds:.1f} s; {WAYS[found.way]})")
        for difference in found.differences:
            say(f"  first difference: {difference}")
        if found.operator is not None:
            say(f"  first operator that differs: {found.operator}")
        for reason in found.reasons:
            say(f"  likely reason: {reason}")
    for line in found.tried:
        say(f"  tried {line}")
    for line in found.outcome.get("operators", {}).get("lines", ()):
        say(f"  {line}")
    return 0 if found.same else 1
