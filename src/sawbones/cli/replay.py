"""sawbones replay: a captured step, executed again."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error

if TYPE_CHECKING:
    from sawbones.capture.bundle import Bundle

DESCRIPTION = """Execute a captured step again, in a new process, and compare it with what was recorded.

The model and the step are rebuilt from the source in the bundle (or, without it, from the local one) in a scratch folder:
nothing of yours is overwritten. Opening a bundle runs nothing; source that came from elsewhere is run only after a yes.
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
    p.add_argument(
        "--yes", action="store_true", help="run source code that came with a bundle made elsewhere"
    )
    p.add_argument("bundle", metavar="BUNDLE", help=".sawbones/<run>/bundles/step-000123.sawbones")
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.capture.bundle import read_bundle
    from sawbones.schema.errors import SawbonesError

    try:
        bundle = read_bundle(given.bundle)
        show_head(bundle)
        agree(bundle, given.yes, "replay")
        raise SystemExit(_replay(bundle, given))
    except SawbonesError as error:
        usage_error(str(error))


def show_head(bundle: Bundle) -> None:
    rank = f", rank {bundle.rank} of {bundle.world_size}" if bundle.world_size > 1 else ""
    print(f"{bundle.path.name}: step {bundle.step} of {bundle.script}{rank}: {bundle.failure.text}")
    for note in bundle.notes:
        print(f"  note: {note}")


def agree(bundle: Bundle, yes: bool, command: str) -> None:
    """Code from elsewhere is not run without a word from the user."""
    from sawbones.capture.replay import foreign

    why = foreign(bundle)
    if why is None or yes:
        return
    files = ", ".join(sorted(bundle.sources())[:8]) or bundle.script
    if not sys.stdin.isatty():
        usage_error(
            f"{bundle.path} would run code ({files}), and {why}. To agree: sawbones "
            f"{command} --yes ..."
        )
    print(f"This bundle runs code ({files}), and {why}.")
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
        say=lambda text: print(f"sawbones: {text}", file=sys.stderr),
    )
    if found.same:
        exactly = (
            "the same kind of failure"
            if given.approximate or not changes.exact
            else "the same, bit for bit"
        )
        print(f"{exactly}: {found.text}  ({found.seconds:.1f} s; {WAYS[found.way]})")
    else:
        print(f"NOT the same: {found.text}  ({found.seconds:.1f} s; {WAYS[found.way]})")
        for difference in found.differences:
            print(f"  first difference: {difference}")
        if found.operator is not None:
            print(f"  first operator that differs: {found.operator}")
        for reason in found.reasons:
            print(f"  likely reason: {reason}")
    for line in found.tried:
        print(f"  tried {line}")
    for line in found.outcome.get("operators", {}).get("lines", ()):
        print(f"  {line}")
    return 0 if found.same else 1
