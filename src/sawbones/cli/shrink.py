"""sawbones shrink: a captured failure made small."""

from __future__ import annotations

import argparse
from pathlib import Path

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say
from sawbones.cli.replay import agree, show_head

DESCRIPTION = """Make a captured failure small: the fewest examples, the shortest sequence, the plainest values that still fail so.

Ends in a smaller bundle and, where an operator of torch is at fault, in reproduce.py: under 60 lines that need only torch.
Exit status: 0 done, 2 usage error or a bundle that does not fail again, 4 interrupted."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones shrink", DESCRIPTION)
    p.add_argument(
        "--out",
        type=values.folder_to_make,
        metavar="FOLDER",
        help="where the results go (default: beside the bundle, <name>-shrunk)",
    )
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=300.0,
        metavar="N",
        help="budget of the search (default 300)",
    )
    p.add_bundle()
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.capture.bundle import read_bundle
    from sawbones.capture.shrink import shrink
    from sawbones.schema.errors import SawbonesError

    try:
        bundle = read_bundle(given.bundle)
        show_head(bundle)
        agree(bundle, given.trust, "shrink", args)
        out = Path(given.out) if given.out else bundle.path.with_name(f"{bundle.path.stem}-shrunk")
        found = shrink(
            bundle,
            out,
            given.seconds,
            say=lambda text: say(f"  {text}", error=True),
        )
    except SawbonesError as error:
        usage_error(str(error))
    say(
        (
            f"examples {found.examples[0]} -> {found.examples[1]}, numbers {found.numbers[0]} "
            f"-> {found.numbers[1]}  "
        ),
        end="",
    )
    say(f"({found.trials} trials, {found.seconds:.0f} s)")
    for line in found.operator:
        say(line)
    say(f"bundle  {found.bundle}   (sawbones replay {found.bundle})")
    say(
        f"script  {found.script}   (python {found.script})"
        if found.script
        else f"no script: {found.why_no_script}"
    )
