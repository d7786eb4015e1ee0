"""A bundle: one captured step, as read from its file. Opening one runs nothing.

bundle = read_bundle(".sawbones/gpt/bundles/step-000123.sawbones")
bundle.failure.kind, bundle.failure.site, bundle.step, bundle.script, bundle.argv
bundle.sources()      # {"train.py": b"..."}, relative to the working folder of the run
bundle.batches()      # one entry per batch of the captured steps: [{"step": 123, "values": ...},
...] bundle.weights()      # {"layers.0.weight": tensor, ...} of the first model, empty where they
were not kept
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.capture.container import Parts, open_parts, refuse
from sawbones.capture.errors import CaptureError
from sawbones.schema import Site

if TYPE_CHECKING:
    import torch

FORMAT = 1
MAX_TEXT = 1 << 20
SUFFIX = ".sawbones"
KINDS = (
    "exception",
    "nonfinite loss",
    "nonfinite gradient",
    "loss spike",
    "rank mismatch",
    "by hand",
)


@dataclass(frozen=True)
class Failure:
    """What happened in the step. `loss` is the last loss of the step, `limit` what a spike was
    measured against.
    """

    kind: str
    text: str  # one line
    exception: str | None = None
    message: str | None = None
    site: Site | None = None  # the user's innermost line
    loss: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Bundle:
    path: Path
    manifest: Mapping[str, Any]
    failure: Failure
    step: int
    rank: int
    world_size: int
    script: str  # relative to the working folder, or absolute
    argv: tuple[str, ...]
    environment: Mapping[str, Any]
    state: Mapping[str, Any]  # packed; see batches(), weights() and capture.frozen
    steps: tuple[Mapping[str, Any], ...]  # signals of the last steps, oldest first
    _parts: Parts = field(repr=False)
    _loaded: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def sha256(self) -> str:
        """Of the whole file, as it was when it was read."""
        return self._parts.sha256

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(str(note) for note in self.manifest.get("notes", ()))

    @property
    def part_names(self) -> tuple[str, ...]:
        """Of the parts that the manifest lists."""
        return tuple(self.manifest["parts"])

    def part(self, name: str) -> bytes:
        return self._parts.read(name)

    def sources(self) -> dict[str, bytes]:
        names = [name for name in self._parts.sizes if name.startswith("source/")]
        return {name.removeprefix("source/"): self._parts.read(name) for name in sorted(names)}

    def tensors(self) -> dict[str, torch.Tensor]:
        if "tensors" not in self._loaded:
            from sawbones.capture import tensors

            self._loaded["tensors"] = tensors.read(
                self.path, self._parts.read("tensors.safetensors")
            )
        found: dict[str, torch.Tensor] = self._loaded["tensors"]
        return found

    def unpacked(self, key: str) -> Any:
        """A part of the state with its tensors in place, None where it was not kept."""
        from sawbones.capture.packing import unpack

        packed = self.state.get(key)
        return unpack(packed, self.tensors()) if packed is not None else None

    def batches(self) -> list[dict[str, Any]]:
        found = self.unpacked("arrivals") or []
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            refuse(self.path, "its batches are no list of mappings")
        return found

    def weights(self) -> dict[str, torch.Tensor]:
        snapshot = self.unpacked("snapshot") or {}
        models = snapshot.get("models") if isinstance(snapshot, dict) else None
        first = models[0] if isinstance(models, list) and models else {}
        found = first.get("tensors", {}) if isinstance(first, dict) else {}
        if not isinstance(found, dict):
            refuse(self.path, "its weights are no mapping")
        return found


def read_bundle(path: str | Path, sha256: str | None = None) -> Bundle:
    """`sha256`: the file has to be this very one."""
    parts = open_parts(Path(path))
    if sha256 is not None and parts.sha256 != sha256:
        raise CaptureError(
            f"{path} is another file than was agreed to: its SHA-256 is {parts.sha256}, expected "
            f"was {sha256}. Nothing was run."
        )
    manifest = parts.manifest
    if manifest.get("format") != FORMAT:
        made_by = str(manifest.get("sawbones", "another version"))[:40]
        raise CaptureError(
            f"{path}: format {str(manifest.get('format'))[:20]} of sawbones {made_by}; "
            f"this version reads format {FORMAT}. "
            f"Install that version: pip install sawbones=={made_by}"
        )
    state, steps, environment = (
        parts.json(name) for name in ("state.json", "steps.json", "environment.json")
    )
    try:
        return Bundle(
            Path(path),
            manifest,
            _failure(manifest["failure"]),
            _whole(manifest["step"]),
            _whole(manifest["rank"]),
            _whole(manifest["world_size"]),
            _text(environment["script"]),
            tuple(_text(a) for a in environment["argv"]),
            _environment(environment),
            dict(state),
            tuple(dict(row) for row in steps),
            parts,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        refuse(Path(path), f"a field is missing or of another kind ({str(error)[:80]})")


def _failure(raw: Mapping[str, Any]) -> Failure:
    site = raw.get("site")
    if raw["kind"] not in KINDS:
        raise ValueError("unknown failure")
    return Failure(
        raw["kind"],
        _text(raw["text"]),
        None if raw.get("exception") is None else _text(raw["exception"]),
        None if raw.get("message") is None else _text(raw["message"]),
        None
        if site is None
        else Site(
            _text(site["file"]), _whole(site["line"]), _text(site["function"]), _text(site["code"])
        ),
        _number(raw.get("loss")),
        _number(raw.get("limit")),
    )


def _environment(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A bundle may come from anywhere: what a replay will rely on has the kind that it relies
    on.
    """
    found = dict(raw)
    for name in ("working_folder", "script_path", "host", "user"):
        found[name] = _text(raw.get(name, ""))
    for name in ("variables", "settings"):
        if not isinstance(raw.get(name, {}), dict):
            raise TypeError(f"{name} is no mapping")
        found[name] = dict(raw.get(name, {}))
    script = Path(_text(raw["script"]))
    if script.is_absolute() or ".." in script.parts or not script.name:
        raise ValueError("the script lies elsewhere")
    if script.parts[0].startswith("-") or not str(script).isprintable():
        raise ValueError("the script has an unusable name")
    return found


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) > 1 << 60:
        raise ValueError("not a whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    if "\0" in value or len(value) > MAX_TEXT:
        raise ValueError("not a usable text")
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, dict):  # JSON has no NaN
        return float(value["$float"])
    return None if value is None else float(value)
