"""The file format of a bundle: a zip of stored parts, a manifest with the SHA-256 of each, and a
digest over the whole file.

Nothing is compressed, so no part can grow when it is read, and the sizes of all parts together
cannot exceed the file's. The last 64 bytes are the SHA-256 of everything before them: a flipped bit
anywhere is seen, also one that a zip reader would ignore. Reading never writes a file and never
runs anything. Every refusal is a CaptureError.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

from sawbones.capture.errors import CaptureError
from sawbones.masking import mask_json

MAX_PARTS = 2000
MAX_JSON_BYTES = 32 << 20
MAX_JSON_DEPTH = 64
MAX_JSON_ITEMS = 2_000_000  # each takes about 100 bytes of memory
MAX_NAME = 300
MAX_FILE_BYTES = 64 << 30
MANIFEST = "manifest.json"
_PARTS = {MANIFEST, "state.json", "steps.json", "environment.json", "tensors.safetensors"}
_SEAL = b"sawbones bundle, sha256 of all before: "
_CHUNK = 1 << 20
_TIME = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # the clock is in the manifest; two bundles of one step differ in nothing else
_TOKEN = re.compile(rb'["\\\[\]{}]')


# writing


class Writer:
    """Parts go in one after the other; close() adds the manifest and the seal and puts the file in
    its place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        self._unfinished = Path(name)
        self._zip = zipfile.ZipFile(name, "w", zipfile.ZIP_STORED)
        self._parts: dict[str, dict[str, Any]] = {}

    def add(self, name: str, content: bytes) -> None:
        self.stream(name, lambda write: write(content))

    def add_json(self, name: str, value: Any) -> None:
        text = mask_json(json.dumps(value, allow_nan=False, separators=(",", ":")))
        self.add(name, text.encode("utf-8", "backslashreplace"))

    def stream(self, name: str, produce: Callable[[Callable[[Any], None]], None]) -> None:
        digest, size = hashlib.sha256(), 0
        with self._zip.open(_entry(name), "w", force_zip64=True) as part:

            def write(piece: Any) -> None:
                nonlocal size
                digest.update(piece)
                size += memoryview(piece).nbytes
                part.write(piece)

            produce(write)
        self._parts[name] = {"sha256": digest.hexdigest(), "size": size}

    def close(self, manifest: Mapping[str, Any]) -> Path:
        plain = json.loads(mask_json(json.dumps(manifest, allow_nan=False)))
        content = json.dumps({**plain, "parts": self._parts}, indent=1)
        with self._zip.open(_entry(MANIFEST), "w") as part:
            part.write(content.encode("utf-8", "backslashreplace"))
        self._zip.comment = _SEAL + b"0" * 64
        self._zip.close()
        seal(self._unfinished)
        os.replace(self._unfinished, self.path)
        return self.path

    def abandon(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()
        with contextlib.suppress(OSError):
            self._unfinished.unlink()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.external_attr = 0o600 << 16
    return entry


def seal(path: Path) -> None:
    """Writes the digest over everything before it into the last 64 bytes."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END) - 64
        file.seek(0)
        digest = _digest(file, end)
        file.seek(end)
        file.write(digest.encode())
        file.flush()
        os.fsync(file.fileno())


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(file: IO[bytes], size: int) -> str:
    return _hashed(file, size).hexdigest()


def _hashed(file: IO[bytes], size: int) -> hashlib._Hash:
    digest = hashlib.sha256()
    while size > 0:
        piece = file.read(min(_CHUNK, size))
        if not piece:
            break
        digest.update(piece)
        size -= len(piece)
    return digest


# reading


class Parts:
    """The parts of a bundle whose structure has been checked. Contents are checked against the
    manifest when they are read.
    """

    def __init__(
        self, path: Path, sha256: str, manifest: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> None:
        self.path = path
        self.sha256 = sha256  # of the whole file, as it was when it was opened
        self.manifest = manifest
        self.sizes = sizes

    def read(self, name: str) -> bytes:
        declared = self.manifest["parts"].get(name)
        if declared is None:
            refuse(self.path, f"it has no part {name}")
        with _opened(self.path) as archive, archive.open(name) as part:
            content = part.read(declared["size"] + 1)
        if (
            len(content) != declared["size"]
            or hashlib.sha256(content).hexdigest() != declared["sha256"]
        ):
            refuse(self.path, f"{name} is not what the manifest says (SHA-256 differs)")
        return content

    def json(self, name: str) -> Any:
        return parse_json(self.path, name, self.read(name))


def refuse(path: Path, why: str) -> NoReturn:
    raise CaptureError(
        f"{path}: not a readable bundle: {why}. Nothing was run and nothing was written."
    )


def open_parts(path: Path) -> Parts:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise CaptureError(f"no bundle {path}. Bundles lie in .sawbones/<run>/bundles.") from error
    if not stat.S_ISREG(status.st_mode):
        raise CaptureError(
            f"{path} is no file. A bundle is one file: .sawbones/<run>/bundles/step-000123.sawbones"
        )
    if not 150 <= status.st_size <= MAX_FILE_BYTES:
        refuse(path, f"{status.st_size} bytes")
    sha256 = _checked_seal(path, status.st_size)
    with _opened(path) as archive:
        sizes = _checked_sizes(path, archive.infolist(), status.st_size)
        if sizes.get(MANIFEST, MAX_JSON_BYTES + 1) > MAX_JSON_BYTES:
            refuse(path, "no manifest of a sensible size")
        with archive.open(MANIFEST) as part:
            manifest = parse_json(path, MANIFEST, part.read(MAX_JSON_BYTES + 1))
    _check_manifest(path, manifest, sizes)
    return Parts(path, sha256, manifest, sizes)


def _checked_seal(path: Path, size: int) -> str:
    """SHA-256 of the whole file, seal included."""
    with path.open("rb") as file:
        digest = _hashed(file, size - 64)
        found = digest.hexdigest()
        claimed = file.read(64)
        digest.update(claimed)
        file.seek(max(0, size - 64 - len(_SEAL)))
        if file.read(len(_SEAL)) != _SEAL:
            refuse(path, "it does not end as a bundle ends (cut off, or another kind of file)")
    if claimed != found.encode():
        refuse(path, "it was changed or damaged since it was written (SHA-256 differs)")
    return digest.hexdigest()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        RuntimeError,
        KeyError,
        EOFError,
    ) as error:
        refuse(path, f"damaged zip structure ({_line(error)})")
    except (
        OSError,
        ValueError,
        struct.error,
        zlib.error,
        OverflowError,
        IndexError,
        AttributeError,
    ) as error:
        refuse(path, f"damaged zip structure ({_line(error)})")


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _checked_sizes(path: Path, entries: list[zipfile.ZipInfo], file_size: int) -> dict[str, int]:
    if not 0 < len(entries) <= MAX_PARTS:
        refuse(path, f"{len(entries)} parts, at most {MAX_PARTS} are allowed")
    sizes: dict[str, int] = {}
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        why = _bad_name(name) or _bad_entry(entry)
        if why:
            refuse(path, f"part {name[:80]!r} {why}")
        folded = unicodedata.normalize("NFC", name).casefold()
        if folded in seen:
            refuse(path, f"part {name[:80]!r} is there twice")
        seen.add(folded)
        sizes[name] = entry.file_size
        if entry.header_offset < 0 or entry.header_offset + entry.file_size > file_size:
            refuse(path, f"part {name[:80]!r} reaches past the end of the file")
    if sum(sizes.values()) > file_size:
        refuse(path, "its parts claim more bytes than the file has")
    return sizes


def _bad_name(name: str) -> str | None:
    if len(name) > MAX_NAME or not name.isprintable():
        return "has an unusable name"
    if (
        "\\" in name
        or ":" in name
        or name.startswith("/")
        or any(piece in ("", ".", "..") for piece in name.split("/"))
    ):
        return "has a name that leads elsewhere"
    if name not in _PARTS and not name.startswith("source/"):
        return "does not belong into a bundle"
    return None


def _bad_entry(entry: zipfile.ZipInfo) -> str | None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is no plain file"
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        return "is compressed; bundles hold stored parts only"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    return None


def parse_json(path: Path, name: str, content: bytes) -> Any:
    if len(content) > MAX_JSON_BYTES:
        refuse(path, f"{name} is larger than {MAX_JSON_BYTES >> 20} MB")
    if content.count(b",") + content.count(b"[") + content.count(b"{") > MAX_JSON_ITEMS:
        refuse(path, f"{name} holds more than {MAX_JSON_ITEMS:,} values")
    if _depth(content) > MAX_JSON_DEPTH:
        refuse(path, f"{name} is nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        return json.loads(
            content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        refuse(path, f"{name} is no valid JSON ({_line(error)})")


def _depth(content: bytes) -> int:
    """Before parsing: a parser would run out of stack first."""
    depth = deepest = 0
    quoted = False
    skip = -1
    for match in _TOKEN.finditer(content):
        token, at = match[0], match.start()
        if at == skip:
            continue
        if quoted:
            if token == b"\\":
                skip = at + 1
            elif token == b'"':
                quoted = False
        elif token == b'"':
            quoted = True
        elif token in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _check_manifest(path: Path, manifest: Any, sizes: Mapping[str, int]) -> None:
    if not isinstance(manifest, dict) or not isinstance(manifest.get("parts"), dict):
        refuse(path, "the manifest lists no parts")
    parts = manifest["parts"]
    if set(parts) != set(sizes) - {MANIFEST}:
        refuse(path, "the manifest lists other parts than the file has")
    for name, entry in parts.items():
        fits = (
            isinstance(entry, dict)
            and type(entry.get("size")) is int
            and isinstance(entry.get("sha256"), str)
        )
        if not fits or entry["size"] != sizes[name]:
            refuse(path, f"the manifest and the file disagree about {name[:80]!r}")
