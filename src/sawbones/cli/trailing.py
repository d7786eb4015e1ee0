"""Flags behind the script: the script's own, as for python, unless it cannot read them and we
can.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

_READS = re.compile(
    r"\b(sys\.argv|argv|argparse|optparse|getopt|click|typer|fire|absl|hydra|tyro|simple_parsing|docopt|jsonargparse|LightningCLI|"
    r"HfArgumentParser|OmegaConf|configargparse|tap|plac|gin|draccus|chz|parse_args|parse_known_args)\b"
)
_LISTS_ALL = re.compile(r"\bArgumentParser\(")  # names every flag in the text, and fails on another
_LISTS_SOME = re.compile(
    r"\b(parse_known_args|HfArgumentParser|sys\.argv|click|typer|fire|hydra|tyro|simple_parsing|LightningCLI)\b"
)
_IMPORT = re.compile(r"^\s*(?:from|import)\s+\.*(\w+)", re.MULTILINE)
_MAX_FILES = 60
_HELP = ("-h", "--help")  # behind a script always the script's, as for python


def take_back(
    script: str, rest: list[str], flags: Collection[str], with_value: Collection[str]
) -> tuple[list[str], list[str]]:
    """(ours, the script's) of what stands behind the script."""
    ours: list[str] = []
    theirs: list[str] = []
    text: str | None = None
    i = 0
    while i < len(rest):
        name, _, value = rest[i].partition("=")
        if rest[i] == "--":
            return ours, theirs + rest[i:]  # the script sees them, too, as it would under python
        if name not in flags or name in _HELP:
            theirs.append(rest[i])
            i += 1
            continue
        text = _source(Path(script)) if text is None else text
        width = 2 if name in with_value and not value else 1
        if _cannot_read(text, name):
            ours += rest[i : i + width]
        else:
            theirs += rest[i : i + width]
            if name not in text:
                say = (
                    f"sawbones: {name} stands behind {script} and was given to the script. To "
                    "give it to sawbones, put it before."
                )
                print(say, file=sys.stderr)
        i += width
    return ours, theirs


def _cannot_read(text: str, flag: str) -> bool:
    if not _READS.search(text):
        return True
    named = flag in text or flag.replace("--no-", "--") in text
    return bool(_LISTS_ALL.search(text)) and not _LISTS_SOME.search(text) and not named


def _source(script: Path) -> str:
    """Of the script and of what lies beside it and is imported: arguments are often read there."""
    if not script.is_file():
        return ""
    seen: dict[Path, str] = {}
    waiting = [script]
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        try:
            seen[path] = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for name in _IMPORT.findall(seen[path]):
            for folder in {script.parent, path.parent}:
                if (folder / f"{name}.py").is_file():
                    waiting.append(folder / f"{name}.py")
                elif (folder / name).is_dir():
                    waiting += sorted((folder / name).rglob("*.py"))[:_MAX_FILES]
    return "\n".join(seen.values())
