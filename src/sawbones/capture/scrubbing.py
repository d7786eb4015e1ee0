"""Masking what an older bundle holds in clear: it is written anew, and known under its new hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sawbones.capture import trust
from sawbones.capture.bundle import SUFFIX, Bundle, read_bundle
from sawbones.capture.container import MANIFEST, Writer
from sawbones.masking import Masker


def scrub_bundles(folder: Path, masker: Masker) -> list[Path]:
    """Those of a run folder; returns the ones that changed."""
    found = sorted((folder / "bundles").glob(f"*{SUFFIX}"))
    bundles = [read_bundle(path) for path in found if path.is_file() and not path.is_symlink()]
    for bundle in bundles:
        masker.learn_arguments(bundle.argv)
    return [bundle.path for bundle in bundles if _scrub(bundle, masker)]


def _scrub(bundle: Bundle, masker: Masker) -> bool:
    parts: dict[str, bytes] = {}
    changed = False
    for name in bundle.part_names:
        if name == "tensors.safetensors":
            continue
        content = bundle.part(name)
        parts[name] = _masked(name, content, masker)
        changed = changed or parts[name] != content
    plain = {key: value for key, value in bundle.manifest.items() if key != "parts"}
    text = json.dumps(plain)
    masked_text = masker.mask_json(text)
    if not changed and masked_text == text:
        return False
    was_own = trust.is_trusted(bundle)
    _write(bundle, parts, json.loads(masked_text))
    if was_own:
        trust.remember_file(bundle.path)
    return True


def _masked(name: str, content: bytes, masker: Masker) -> bytes:
    if name.startswith("source/"):
        return masker.mask_bytes(content)
    text = content.decode("utf-8")
    if name != "environment.json":
        return masker.mask_json(text).encode()
    environment: dict[str, Any] = json.loads(text)
    argv = [str(argument) for argument in environment.get("argv", ())]
    masked = masker.mask_arguments(argv)
    if masked != argv:
        text = json.dumps({**environment, "argv": masked}, separators=(",", ":"))
    return masker.mask_json(text).encode()


def _write(bundle: Bundle, parts: dict[str, bytes], manifest: dict[str, Any]) -> None:
    writer = Writer(bundle.path)
    try:
        if "tensors.safetensors" in bundle.part_names:
            writer.add("tensors.safetensors", bundle.part("tensors.safetensors"))
        for name, content in parts.items():
            if name != MANIFEST:
                writer.add(name, content)
        writer.close(manifest)
    except BaseException:
        writer.abandon()
        raise
