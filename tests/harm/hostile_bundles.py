"""Bundles and reports that nobody's Sawbones made."""

from __future__ import annotations

import json
import os
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.capture.made import forge
from tests.harm.hostile_runs import BREAKOUT, CODE, ESCAPES, Touch

Parts = dict[str, bytes]


def evil(parts: Parts) -> None:
    """Its own word is that this very user made it, here, with this script."""
    parts["source/train.py"] = f"{CODE}\n".encode() + parts["source/train.py"]


def environment(**changes: Any) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        found = json.loads(parts["environment.json"])
        found["variables"] |= changes.pop("variables", {})
        parts["environment.json"] = json.dumps({**found, **changes}).encode()

    return change


def manifest(**changes: Any) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        found = json.loads(parts["manifest.json"])
        failure = changes.pop("failure", {})
        found["failure"] |= failure
        parts["manifest.json"] = json.dumps({**found, **changes}).encode()

    return change


def part(name: str, content: bytes) -> Callable[[Parts], None]:
    return lambda parts: parts.__setitem__(name, content)


def tensors(header: bytes, data: bytes = b"") -> Callable[[Parts], None]:
    content = struct.pack("<Q", len(header)) + header + data
    return part("tensors.safetensors", content)


def _both(*changes: Callable[[Parts], None]) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        for one in changes:
            one(parts)

    return change


def deflated(entry: zipfile.ZipInfo) -> None:
    entry.compress_type = zipfile.ZIP_DEFLATED


def linked(entry: zipfile.ZipInfo) -> None:
    if entry.filename == "source/train.py":
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16


LOADING = {
    "LD_PRELOAD": "./evil.so",
    "PYTHONSTARTUP": "evil.py",
    "OMP_TOOL_LIBRARIES": "./evil.so",
    "BASH_ENV": "evil.sh",
}
BUNDLES: dict[str, Callable[[Parts], None]] = {
    "code before the first line": evil,
    "code, and the claim to be from here": _both(evil, environment(host=os.uname().nodename)),
    "a path that climbs": part("source/../../evil.py", CODE.encode()),
    "an absolute path": part("source//etc/evil.py", CODE.encode()),
    "a part that does not belong": part("data.pkl", pickle.dumps(Touch())),
    "a pickle as tensors": part("tensors.safetensors", pickle.dumps(Touch())),
    "a pickle as state": part("state.json", pickle.dumps(Touch())),
    "nested JSON": part("state.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "a bomb of lists": part("steps.json", b"[" + b"[]," * 9_000_000 + b"[]]"),
    "an endless number in state": part("state.json", b'{"a":' + b"9" * 100_000 + b"}"),
    "a header longer than the file": part("tensors.safetensors", b"\xff" * 7 + b"\x00"),
    "a shape of exabytes": tensors(
        b'{"a":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4]}}', b"\0" * 4
    ),
    "tensors on top of each other": tensors(
        b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}',
        b"\0" * 4,
    ),
    "variables that load code": _both(evil, environment(variables=LOADING)),
    "a script that is an option": environment(script="-c", argv=[CODE]),
    "a script elsewhere": environment(script="/etc/evil.py"),
    "a script with a line break": environment(script=f"x.py\n{CODE}"),
    "arguments that are options": _both(evil, environment(argv=["--help", "-c", CODE])),
    "escapes in what it says": manifest(failure={"text": ESCAPES}, notes=[ESCAPES] * 3),
    "a docstring that ends": manifest(failure={"text": BREAKOUT, "message": BREAKOUT}),
    "a place that ends a docstring": manifest(
        failure={"site": {"file": BREAKOUT, "line": 1, "function": BREAKOUT, "code": BREAKOUT}}
    ),
    "a step that is a text": manifest(step="3; import os"),
    "megabytes of notes": manifest(notes=["N" * 1000] * 20_000),
}


def make_bundles(real: Path, folder: Path) -> dict[str, Path]:
    made = {}
    for number, (name, change) in enumerate(BUNDLES.items()):
        made[name] = forge(real, folder / f"b{number}.sawbones", change)
    made["compressed parts"] = forge(real, folder / "deflated.sawbones", evil, deflated)
    made["a link as a part"] = forge(real, folder / "linked.sawbones", evil, linked)
    made["a pipe as a bundle"] = folder / "pipe.sawbones"
    os.mkfifo(made["a pipe as a bundle"])
    made["a plain zip"] = folder / "zip.sawbones"
    with zipfile.ZipFile(made["a plain zip"], "w") as archive:
        archive.writestr("__main__.py", CODE)
    return made


def make_reports(real: Path, folder: Path) -> dict[str, Path]:
    """Reports whose tests, names and numbers are not ours."""
    report = json.loads(real.read_text(encoding="utf-8"))
    first = report["findings"][0]

    def with_finding(**changes: Any) -> str:
        return json.dumps({**report, "findings": [{**first, **changes}]})

    texts = {
        "a test of its own": with_finding(test=f"{CODE}\n"),
        "a test with a line more": with_finding(test=first["test"] + f"\n{CODE}\n"),
        "a test with an argument that runs": with_finding(
            test=first["test"].replace('"train.py"', f'"train.py", {CODE}')
        ),
        "another harness": with_finding(test=first["test"].replace("import torch", CODE)),
        "a docstring with code": with_finding(
            test=first["test"].replace('"""', f'"""{BREAKOUT}', 1)
        ),
        "a fault that climbs": with_finding(fault="../../evil"),
        "words where lists belong": with_finding(where="x"),
        "a nested report": "[" * 200_000,
        "an endless number in a report": '{"schema": ' + "9" * 100_000 + "}",
    }
    made = {}
    for number, (name, text) in enumerate(texts.items()):
        made[name] = folder / f"r{number}.json"
        made[name].write_text(text, encoding="utf-8")
    return made
