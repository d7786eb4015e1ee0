"""The command line: one module per command, imported only when that command runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from sawbones import __version__
from sawbones.cli.guard import as_process, guarded, usage_error

# name -> one line for the overview. The module sawbones.cli.<name> holds run(args).
COMMANDS = {
    "diagnose": "Find the root cause of a sick training script, prove it, and give the fix.",
    "fix": "The patch for each cause, in the script's own names, tried before it is shown.",
    "run": "Run a training script unchanged and record it.",
    "try": "Change one thing about a script, run it again, and say what that shows.",
    "profile": "Where the time and memory of a training step go, by line.",
    "replay": "Execute a captured failing step again: the same exception, the same bits.",
    "shrink": (
        "Make a captured failure small: fewest examples, shortest sequence, a script of its own."
    ),
    "attach": "Look at a training that hangs and was never watched: who waits for whom.",
    "audit": "Find leaks and shifts in the data sets themselves.",
    "parity": "Where what serves parts from what was trained, on golden rows.",
    "show": "Summarise a recorded run.",
    "page": "Curves, findings, layers and data of runs in a browser, while they go on.",
    "compare": "What changed between two recorded runs, and where they part.",
    "runs": "List recorded runs.",
    "clean": "Remove old recorded runs.",
    "scrub": "Mask the secrets that an older recording holds in clear.",
    "query": "SQL over a recorded run.",
    "report": "A postmortem of a recorded run, or a folder that reruns to its symptom.",
    "export": "A recorded run for TensorBoard or Perfetto, or as a table.",
    "explain": "Look something up: a fault, a symptom in your own words, or any word.",
    "pin": "Findings become regression tests: pytest files that fail until the code is mended.",
    "check": "The ordered triage of a model, data, loss and optimizer given as factories.",
    "mcp": "A server for agents: the commands as tools of the Model Context Protocol.",
    "faults": "All faults, with the state of each.",
    "practise": "Learn to debug: broken scripts to find the cause of, graded by running.",
    "lab": "Scripts with known faults: list, run, or score diagnose on them.",
    "train": "Train the reference Transformer pipeline.",
    "help": "Help on a command, a fault, a symptom or the exit status.",
    "completion": "Tab completion for bash, zsh or fish.",
}

USAGE = """Usage: sawbones [--version] [--help] COMMAND [ARGS]...

A debugger for PyTorch training: the root cause, the line, the proof, the fix.
"""


def overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items())
    return (
        f"{USAGE}\nCommands:\n{rows}\n\n`sawbones COMMAND --help` shows the flags of one command."
    )


def main(argv: Sequence[str] | None = None) -> None:
    """As a process (without `argv`), or one call of a test."""
    if argv is not None:
        guarded(dispatch, list(argv))
    else:
        as_process(dispatch, sys.argv[1:])


def dispatch(args: list[str]) -> None:
    """By hand: typer alone takes a third of the help budget to import."""
    if not args or args[0] in ("--help", "-h"):
        print(overview())
        raise SystemExit(0 if args else 2)
    if args[0] == "--version":
        print(f"sawbones {__version__}")
        raise SystemExit(0)
    if args[0] not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(args[0], COMMANDS, n=3)
        listed = f"Nearest: {', '.join(near)}" if near else f"There are: {', '.join(COMMANDS)}"
        usage_error(f"no command {args[0]!r}. {listed}. What each does: sawbones --help")
    module = importlib.import_module(f"sawbones.cli.{args[0]}")
    module.run(args[1:])
