"""sawbones compare A B: what changed between two recorded runs, and where they part."""

from __future__ import annotations

import textwrap
from pathlib import Path

from sawbones.cli.arguments import Parser, is_run_folder, usage_error
from sawbones.cli.printing import say

DESCRIPTION = """What changed since it worked: versions, commit, arguments, settings, data, what the loop did, and the
first step at which the losses part. A is the run that worked, B the one that does not. With more runs, each against A.
Exit status: 0 when nothing differs, 1 when something does."""
_WIDTH = 80
_WORDS = {
    "version": "environment",
    "arguments": "arguments",
    "setting": "setting",
    "changes": "source",
    "event": "the loop",
}


def run(args: list[str]) -> None:
    p = Parser("sawbones compare", DESCRIPTION)
    p.add_argument("first", metavar="A", help="a recorded run")
    p.add_argument("others", nargs="+", metavar="B", help="the runs to compare with it")
    given = p.parse_args(args)
    for name in (given.first, *given.others):
        if not is_run_folder(Path(name)):
            usage_error(f"no recorded run in {name}. Those in .sawbones: sawbones runs")
    from sawbones.store import read_run

    first = read_run(given.first)
    differs = False
    for name in given.others:
        lines = _lines(given.first, name, first, read_run(name))
        differs |= len(lines) > 2
        say("\n".join(lines))
    raise SystemExit(1 if differs else 0)


def _lines(first_name: str, name: str, first, other) -> list[str]:  # type: ignore[no-untyped-def]
    from sawbones.trials.good_run import differences, first_loss

    found = differences(first, other)
    steps = f"{first.num_steps} and {other.num_steps} steps"
    lines = [f"{first_name} -> {name}  ({steps})"]
    for one in found:
        label = _WORDS.get(one.what, one.what)
        at = f" ({one.site})" if one.site is not None else ""
        wrapped = textwrap.wrap(one.text + at, _WIDTH - 15, break_long_words=False)
        lines += [f"  {label if not i else '':11}  {text}" for i, text in enumerate(wrapped)]
    parted = first_loss(found)
    if parted is not None:
        lines.append(f"  they part at step {parted.step}")
    elif not found:
        lines.append("  nothing differs as far as both went")
    else:
        lines.append("  the losses do not part as far as both went")
    return lines
