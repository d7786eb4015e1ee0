"""Patched mode: programs that a script starts would write where they like, so they are held back.

Python itself is started with the same redirects. What torch and Python ask of the system while they
are imported changes nothing and passes.
"""

from __future__ import annotations

import _posixsubprocess
import os
import posix
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sawbones.isolation.held_back import Record
from sawbones.isolation.redirects import Wrapping

GUARDING = "SAWBONES_GUARDING"  # for a Python process: where it finds what is to be held back
# They print what they know and end. With arguments: only when these are all of them.
_ASKING = {
    "uname": None,
    "lscpu": None,
    "nproc": None,
    "getconf": None,
    "arch": None,
    "nvidia-smi": None,
    "rocm-smi": None,
    "rocminfo": None,
    "lsb_release": None,
    "which": None,
    "ldconfig": ("-p",),
    "gcc": ("--version", "-v", "-dumpversion", "-dumpfullversion", "-dumpmachine"),
    "g++": ("--version", "-v", "-dumpversion", "-dumpfullversion", "-dumpmachine"),
    "cc": ("--version", "-v", "-dumpversion", "-dumpfullversion", "-dumpmachine"),
    "c++": ("--version", "-v", "-dumpversion", "-dumpfullversion", "-dumpmachine"),
    "nvcc": ("--version", "-V"),
    "hostname": (),
}
_START = """\
import importlib.machinery, os, sys
own = os.path.dirname(__file__)
sys.path[:] = [folder for folder in sys.path if folder != own]
sys.path.append({package!r})
from sawbones.isolation.guarding import install_from_environment
install_from_environment()
sys.path.remove({package!r})
next_one = importlib.machinery.PathFinder.find_spec("sitecustomize")
if next_one is not None:
    next_one.loader.exec_module(sys.modules["sitecustomize"])
"""


class Processes:
    def __init__(self, record: Record, wrapping: Wrapping, box: str, guarding_file: str) -> None:
        self._record = record
        self._w = wrapping
        self._site = os.path.join(box, "site")
        self._guarding_file = guarding_file

    def install(self) -> None:
        os.makedirs(self._site, exist_ok=True)
        package = str(Path(__file__).resolve().parents[2])
        text = _START.format(package=package)
        Path(self._site, "sitecustomize.py").write_text(text, encoding="utf-8")

        self._w.wrap(_posixsubprocess, "fork_exec", self._fork_exec)
        # Popen takes a short cut around fork_exec where it may; without it there is one way.
        setattr(subprocess, "_USE_POSIX_SPAWN", False)  # noqa: B010 - declared as final
        takes: dict[str, Callable[..., Any]] = {
            "system": self._system,
            "posix_spawn": self._spawn,
            "posix_spawnp": self._spawn,
            "execv": self._exec,
            "execve": self._exec,
        }
        for name, act in takes.items():
            self._w.wrap(os, name, act)
            setattr(posix, name, getattr(os, name))
        self._w.everywhere()

    def _fork_exec(self, given: Any, args: Sequence[Any], *rest: Any) -> Any:
        environment = self._environment(args, rest[4])
        return given(args, *rest[:4], environment, *rest[5:])

    def _system(self, given: Any, command: Any) -> Any:
        self._refuse([os.fsdecode(command)])

    def _spawn(self, given: Any, path: Any, argv: Any, env: Any, /, **settings: Any) -> Any:
        changed = self._environment([path, *list(argv)[1:]], env)
        return given(path, argv, changed if changed is not None else env, **settings)

    def _exec(self, given: Any, path: Any, argv: Any, env: Any = None) -> Any:
        changed = self._environment([path, *list(argv)[1:]], env)
        if changed is None:
            return given(path, argv) if env is None else given(path, argv, env)
        pairs = (item.partition(b"=") for item in changed)
        return os.execve(path, argv, {key: value for key, _, value in pairs})

    def _environment(self, args: Sequence[Any], given: Any) -> Any:
        """What the new process is to see; raises where it is not to be started at all."""
        words = [os.fsdecode(os.fspath(word)) for word in args]
        if _only_asks(words):
            return given
        if not _is_redirected_python(words):
            self._refuse(words)
        if given is None:
            pairs = dict(os.environb)
        elif isinstance(given, dict):
            pairs = {os.fsencode(key): os.fsencode(value) for key, value in given.items()}
        else:
            split = (os.fsencode(item).partition(b"=") for item in given)
            pairs = {key: value for key, _, value in split}
        path = pairs.get(b"PYTHONPATH")
        pairs[b"PYTHONPATH"] = os.fsencode(self._site) + (b":" + path if path else b"")
        pairs[b"SAWBONES_GUARDING"] = os.fsencode(self._guarding_file)
        if isinstance(given, dict):
            return pairs
        return [key + b"=" + value for key, value in pairs.items()]

    def _refuse(self, words: list[str]) -> None:
        text = " ".join(words)[:200]
        self._record.add("subprocess", text)
        raise PermissionError(
            f"starting {text!r} was held back by sawbones (it could change your files); to allow "
            "it: sawbones diagnose --allow subprocess"
        )


def _is_redirected_python(words: list[str]) -> bool:
    """This Python, with nothing that keeps it from reading its environment."""
    same = {sys.executable, os.path.realpath(sys.executable), getattr(sys, "_base_executable", "")}
    if words[0] not in same and os.path.realpath(words[0]) not in same:
        return False
    for word in words[1:]:
        if not word.startswith("-") or word in ("-c", "-m", "-"):
            return True
        if word[1:2] != "-" and set(word[1:]) & set("IES"):
            return False
    return True


def _only_asks(words: list[str]) -> bool:
    name = os.path.basename(words[0])
    if name not in _ASKING:
        return False
    known = _ASKING[name]
    return known is None or set(words[1:]) <= set(known)
