"""What a script wanted and was not given: written down where the parent finds it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sawbones.observe.sites import SiteFinder
from sawbones.schema.one_off import HeldBack
from sawbones.schema.run import Ending

FILE = "held_back.jsonl"
MAX_RECORDS = 100
# In kernel mode a file of another user cannot be copied into the private file system of this one;
# in patched mode Landlock refuses what compiled code writes outside of the copy.
_REFUSED = {"kernel": re.compile(r"^\[Errno 75\]"), "patched": re.compile(r"(?i)permission denied")}
# Torch asks for the names of its peers and does without: a question counts only as last words.
_UNRESOLVED = re.compile(r"(?i)resol|name or service|getaddrinfo|no address|dns|unavailable")
_PATH = re.compile(r"""['"]?(/[^'":]+)""")
ALLOWED_BY = {
    "network": "--allow network",
    "names": "--allow network",
    "subprocess": "--allow subprocess",
    "files": "--allow files:{} (the script then really writes there)",
    "signals": None,  # no flag: nothing of a diagnosis needs other processes to be signalled
    "memory": None,
    "system": None,
}


class Record:
    """Of one child and everything that it starts."""

    def __init__(self, run_folder: Path, root: str) -> None:
        self._file = str(run_folder / FILE)
        self._open = os.open  # the script's own calls are redirected, ours are not
        self._sites = SiteFinder(root)
        self._seen: set[tuple[str, str]] = set()

    def add(self, what: str, target: str, **more: Any) -> None:
        """By the script that makes the call."""
        site = self._sites.find(sys._getframe(1))
        self.note(what, target, f"{site.file}:{site.line}" if site is not None else None, **more)

    def note(self, what: str, target: str, place: str | None, **more: Any) -> None:
        if (what, target) in self._seen or len(self._seen) >= MAX_RECORDS:
            return
        self._seen.add((what, target))
        row = {"what": what, "target": target, "site": place, **more}
        try:
            file = self._open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(file, json.dumps(row).encode() + b"\n")
            os.close(file)
        except OSError:
            pass  # the script gets its error in any case


def read(run_folder: Path) -> list[HeldBack]:
    """What the children of a run wanted. Connections to this machine count only where there is
    something to connect to: a private network has no services of the user's.
    """
    try:
        lines = (run_folder / FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found: list[HeldBack] = []
    for line in lines:
        row = json.loads(line)
        port = row.pop("local_port", None)
        if port is None or is_listening(port):
            found.append(HeldBack(row["what"], row["target"], row["site"]))
    return list(dict.fromkeys(found))


def with_last_words(wanted: list[HeldBack], ending: Ending, mode: str) -> list[HeldBack]:
    """With the file that the script could not write and died of; without names that it could do
    without.
    """
    if not _UNRESOLVED.search(ending.message or ""):
        wanted = [row for row in wanted if row.what != "names"]
    path = refused_file(ending.message or "", mode)
    if path is None:
        return wanted
    place = f"{ending.site.file}:{ending.site.line}" if ending.site else None
    what = next((row.what for row in wanted if row.target == path), "files")
    others = [row for row in wanted if row.target != path]
    return [*others, HeldBack(what, path, place)]


def refused_file(message: str, mode: str) -> str | None:
    """The file that the last words of a script say it could not write, where only the room forbids
    it.
    """
    named = _PATH.search(message)
    if named is None or not _REFUSED[mode].search(message):
        return None
    path = named.group(1)
    may_write = os.access(path if os.path.exists(path) else os.path.dirname(path), os.W_OK)
    return path if mode == "kernel" or may_write else None


def is_listening(port: int) -> bool:
    return any(number == port for number, _ in _sockets(("tcp", "tcp6")))


def bound() -> list[tuple[int, str]]:
    """Ports on which somebody waits for others in this network, with the inode of the socket."""
    return _sockets(("tcp", "tcp6", "udp", "udp6"))


def _sockets(kinds: Iterable[str]) -> list[tuple[int, str]]:
    found = []
    for name in kinds:
        try:
            lines = Path(f"/proc/net/{name}").read_text(encoding="utf-8").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            is_open_to_all = fields[2].strip("0:") == ""  # a datagram socket without a partner
            if fields[3] == "0A" or (name.startswith("udp") and is_open_to_all):
                found.append((int(fields[1].rpartition(":")[2], 16), fields[9]))
    return found
