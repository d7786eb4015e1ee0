"""Call sites: the innermost frame of the user's own code, found without formatting a traceback."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from sawbones.observe.notebook import kernel_cell
from sawbones.schema import Site

_Read = TypeVar("_Read")
# A copy of the user's files stands below a folder of this name, each at its own absolute path.
MIRROR = "sawbones-mirror"
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The reference trainer and the lab are patients: their frames are a user's frames.
_PATIENTS = (os.path.join(_OWN, "trainer") + os.sep, os.path.join(_OWN, "lab") + os.sep)
_ROOMS = os.path.join(_OWN, "faults") + os.sep


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    # scripts: what pip installs to start a tool, ours among them
    folders = {
        paths[key]
        for key in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
        if key in paths
    }
    folders.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    folders.add(
        site.getusersitepackages() if hasattr(site, "getusersitepackages") else paths["purelib"]
    )
    # An environment that stands on another one (a .pth file, `uv run --with`) has its libraries too.
    folders.update(
        entry
        for entry in sys.path
        if os.path.basename(entry.rstrip(os.sep)) in ("site-packages", "dist-packages")
    )
    return tuple(
        sorted({os.path.realpath(f) + os.sep for f in folders} | {f + os.sep for f in folders})
    )


_LIBRARIES = _library_folders()
_COMMANDS = sysconfig.get_path("scripts") + os.sep


def is_own_file(filename: str) -> bool:
    """True for code of Sawbones itself, without the scripts among it that are patients."""
    return filename.startswith(_OWN) and not is_user_file(filename)


def is_user_file(filename: str) -> bool:
    """True for code that the user wrote: neither a library, nor the standard library, nor Sawbones
    itself.
    """
    if filename.startswith("<"):
        # Notebook cells and exec'd strings are the user's; frozen modules and generated code are
        # not.
        return filename.startswith(("<ipython", "<stdin"))
    if filename.startswith(_OWN):
        in_room = filename.startswith(_ROOMS) and filename.endswith(f"{os.sep}lab.py")
        return in_room or filename.startswith(_PATIENTS)
    # Frames of compiled code name the file that they were built from, which is not here.
    return not filename.startswith(_LIBRARIES) and not filename.endswith((".pyx", ".pxi"))


class SiteFinder:
    """Maps frames to interned sites. One lookup per code object and line after the first time."""

    def __init__(self, root: str = "") -> None:
        # Files below `root` are shown relative to it, so a run in a scratch copy names the same
        # files.
        self._root = os.path.realpath(root) + os.sep if root else ""
        self._kinds: dict[CodeType, int] = {}
        self._sites: dict[tuple[CodeType, int], Site] = {}
        # by the offset of the instruction: the line of an offset is a search through a table
        self._at: dict[tuple[CodeType, int], Site] = {}
        self._read: dict[tuple[Any, str], Any] = {}

    def find(self, start: FrameType | None = None) -> Site | None:
        """The innermost user frame, or the innermost frame outside of torch and Sawbones when there
        is none.
        """
        kinds = self._kinds
        fallback: FrameType | None = None
        current: FrameType | None = start if start is not None else sys._getframe(1)
        while current is not None:
            code = current.f_code
            kind = kinds.get(code)
            if kind is None:
                kind = kinds[code] = _kind_of(code.co_filename)
            if kind == _USER:
                return self._site(current)
            if kind == _LIBRARY and fallback is None:
                fallback = current
            current = current.f_back
        return self._site(fallback) if fallback is not None else None

    def of_frame(self, frame: FrameType) -> Site:
        return self._site(frame)

    def callers(self, most: int) -> list[Site]:
        """The user frames around the innermost one, from inside to outside."""
        found: list[Site] = []
        current: FrameType | None = sys._getframe(1)
        while current is not None and len(found) <= most:
            code = current.f_code
            kind = self._kinds.get(code)
            if kind is None:
                kind = self._kinds[code] = _kind_of(code.co_filename)
            if kind == _USER:
                found.append(self._site(current))
            current = current.f_back
        return found[1:]

    def files(self) -> list[str]:
        """Those that sites lie in, in the order in which they were first seen."""
        return list(dict.fromkeys(code.co_filename for code, _ in self._sites))

    def off_file(self, read: Callable[[str], _Read], filename: str) -> _Read:
        """What `read` makes of a file, once per recording."""
        key = (read, filename)
        if key not in self._read:
            self._read[key] = read(filename)
        found: _Read = self._read[key]
        return found

    def shown(self, filename: str) -> str:
        cell = kernel_cell(filename)
        if cell is not None:
            return cell
        real = os.path.realpath(filename) if not filename.startswith("<") else filename
        if not self._root:
            return filename
        if real.startswith(self._root):
            return real[len(self._root) :]
        # Beside the working folder: the copy goes, the user's own file stays.
        return filename.partition(f"{os.sep}{MIRROR}")[2] or filename

    def _site(self, frame: FrameType) -> Site:
        at = (frame.f_code, frame.f_lasti)
        found = self._at.get(at)
        if found is None:
            found = self._at[at] = self.of_line(frame.f_code, frame.f_lineno)
        return found

    def of_line(self, code: CodeType, line: int) -> Site:
        found = self._sites.get((code, line))
        if found is None:
            text = linecache.getline(code.co_filename, line).strip()
            found = Site(self.shown(code.co_filename), line, code.co_name, text[:200])
            self._sites[code, line] = found
        return found


_USER, _LIBRARY, _PLUMBING = range(3)


def _kind_of(filename: str) -> int:
    if is_user_file(filename):
        return _USER
    return _PLUMBING if _is_plumbing(filename) else _LIBRARY


def _is_plumbing(filename: str) -> bool:
    return (
        filename.startswith((_OWN, _COMMANDS, "<"))
        or f"{os.sep}torch{os.sep}" in filename
        or filename.endswith(("contextlib.py", "functools.py", "runpy.py", "threading.py"))
    )
