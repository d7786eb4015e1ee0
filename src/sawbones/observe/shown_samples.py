"""A few examples of the latest batch, made ready for the eye: pictures as pixels, token ids as text.

Under `sawbones run --page` alone, and in a file of their own beside the recording: values of the
user's data are nothing that a recording carries elsewhere.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
import types
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sawbones.masking import mask, shown_line
from sawbones.observe.deep.measure import is_plain
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.signals.vocabularies import Vocabularies
from sawbones.schema import TokenInput
from sawbones.store.private import make_private_file
from sawbones.store.shown import SAMPLES_FILE

EXAMPLES = 4
SECONDS = 5.0  # between two of them
MAX_TOKENS = 48
MAX_NUMBERS = 8
MAX_TEXT = 240  # letters
MAX_SIDE = 48  # pixels
_LEAST_SIDE = 8
_COLOURS = (1, 3, 4)
_CHECKED = 256  # ids of a batch that are looked up to see whether a vocabulary fits

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

Decode = Callable[[list[int]], str]


class ShownSamples:
    def __init__(self, folder: Path) -> None:
        self._path = folder / SAMPLES_FILE
        self._next = 0.0
        self._num_taken = 0
        self._tokens: tuple[TokenInput, ...] = ()
        self._vocabularies = Vocabularies()

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def embedded(self, tokens: tuple[TokenInput, ...]) -> None:
        """A deep step saw which ids go into an embedding, and how many it has."""
        self._tokens = tokens or self._tokens
        self._next = 0.0

    def step_over(self, recorder: Recorder, frame: types.FrameType | None) -> None:
        batch = recorder.batches.loaded
        self.take(_inputs(recorder.last_call) if batch is None else batch, recorder.step, frame)

    def take(self, batch: Any, step: int, frame: types.FrameType | None) -> None:
        self._next = time.monotonic() + SECONDS
        if self._num_taken in (0, 4):  # once built they stay, and the walk takes milliseconds
            self._vocabularies.look(frame)
        self._num_taken += 1
        # what is on a device is left there: reading it would mean to wait for it
        found = [(path, t) for path, t in tensors_in(batch) if is_plain(t) and t.dim()]
        here = [(path, t.detach()) for path, t in found if t.device.type == "cpu" and t.numel()]
        sizes = Counter(t.shape[0] for _, t in here)
        rows = sizes.most_common(1)[0][0] if sizes else 0
        columns = [
            {"name": _name(path), **self._column(tensor[:EXAMPLES], tensor)}
            for path, tensor in here
            if tensor.shape[0] == rows
        ]
        columns += [
            {"name": name, "kind": "text", "values": [_line(t) for t in texts]}
            for name, texts in _texts(batch, rows)
        ]
        why = "" if columns else _why_none(len(found))
        self._write({"step": step, "rows": rows, "columns": columns[:8], "why": why})

    def _write(self, shown: dict[str, Any]) -> None:
        beside = make_private_file(self._path.with_suffix(".new"))
        beside.write_text(json.dumps(shown), encoding="utf-8")
        os.replace(beside, self._path)

    def _column(self, few: torch.Tensor, whole: torch.Tensor) -> dict[str, Any]:
        pixels = _pictures(few)
        if pixels is not None:
            return _as_pictures(pixels)
        if few.dtype is torch.bool or few.dtype.is_floating_point:
            return {"kind": "numbers", "values": [_numbers(row) for row in few]}
        if few.dim() == 1:
            return {"kind": "numbers", "values": [str(value) for value in few.tolist()]}
        ids = few.reshape(len(few), -1)[:, :MAX_TOKENS].tolist()
        decode, why = self._decoder(whole)
        cut = "" if few[0].numel() <= MAX_TOKENS else " …"
        if decode is None:
            values = [" ".join(map(str, row)) + cut for row in ids]
            return {"kind": "ids", "values": values, "why": why}
        return {"kind": "text", "values": [_line(decode(row)) + cut for row in ids]}

    def _decoder(self, whole: torch.Tensor) -> tuple[Decode | None, str]:
        """The one vocabulary in the script's hands that has a word for every id of this tensor and
        as many words as its embedding has rows, and why there is none.
        """
        ids = whole.reshape(-1)[:_CHECKED].tolist()
        sizes = {t.num_embeddings for t in self._tokens if t.shape == tuple(whole.shape)}
        fitting: dict[tuple[str, ...], Decode] = {}
        for table, joint in self._tables():
            if all(i in table for i in ids) and (not sizes or len(table) in sizes):
                fitting[tuple(table[i] for i in ids)] = _by_table(table, joint)
        known = list(self._vocabularies.tokenizers.values())
        if len(known) == 1 and not fitting and min(ids, default=0) >= 0:
            return known[0].decode, ""
        if len(fitting) == 1:
            return next(iter(fitting.values())), ""
        if fitting:
            return None, "several vocabularies fit"
        seen = bool(known or self._tables())
        return None, "no vocabulary fits these ids" if seen else "no vocabulary was seen"

    def _tables(self) -> list[tuple[dict[int, str], str]]:
        found = [dict(table) for _, table in self._vocabularies.decoders.values()]
        for _, words in self._vocabularies.encoders.values():
            found.append({number: word for word, number in words.items()})
        # single letters are read together, words with a space between them
        return [(t, "" if all(len(w) == 1 for w in t.values()) else " ") for t in found]


def _inputs(call: tuple[Any, tuple[Any, ...], dict[str, Any]] | None) -> dict[str, Any]:
    """Of a model call, by name or number."""
    _, args, kwargs = call or (None, (), {})
    return {**{f"input {i}": value for i, value in enumerate(args)}, **kwargs}


def _by_table(table: dict[int, str], joint: str) -> Decode:
    return lambda ids: joint.join(table.get(i, f"<{i}>") for i in ids)


def _name(path: str) -> str:
    """`['image']` is `image`; a place in a tuple stays `[0]`."""
    named = re.fullmatch(r"\[['\"]([^'\"]+)['\"]\]", path)
    return named[1] if named is not None else path or "batch"


def _line(text: str) -> str:
    """Masked before it is cut: half a secret is one too."""
    return shown_line(mask(text))[:MAX_TEXT]


def _why_none(num_tensors: int) -> str:
    if num_tensors:
        return "the batch is on a device, and reading it would hold up the training"
    return "the batch holds no tensors"


def _numbers(row: torch.Tensor) -> str:
    flat = row.reshape(-1)
    told = " ".join(f"{value:.4g}" for value in flat[:MAX_NUMBERS].tolist())
    return told + (f" … ({flat.numel()} values)" if flat.numel() > MAX_NUMBERS else "")


def _pictures(few: torch.Tensor) -> Any:
    """(examples, height, width, colours), or None where these are no pictures."""
    if few.dtype is not torch.uint8 and not few.dtype.is_floating_point:
        return None
    values = few.float()
    if few.dim() == 4 and few.shape[1] in _COLOURS and min(few.shape[2:]) >= _LEAST_SIDE:
        values = values.movedim(1, -1)
    elif few.dim() == 3 and few.shape[1] == few.shape[2] >= _LEAST_SIDE:
        values = values[..., None]
    elif few.dim() != 4 or few.shape[-1] not in _COLOURS or min(few.shape[1:3]) < _LEAST_SIDE:
        return None
    every = -(-max(values.shape[1:3]) // MAX_SIDE)
    return values[:, ::every, ::every, :3].numpy()


def _as_pictures(pixels: Any) -> dict[str, Any]:
    """The smallest value is black and the largest is white, over all that is shown."""
    finite = pixels[np.isfinite(pixels)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    with np.errstate(invalid="ignore"):
        shades = np.nan_to_num((pixels - low) / ((high - low) or 1.0)).clip(0, 1)
    colours = np.repeat(shades, 3, axis=-1) if shades.shape[-1] == 1 else shades
    data = (255 * colours).astype(np.uint8)
    return {
        "kind": "pictures",
        "width": data.shape[2],
        "height": data.shape[1],
        "low": low,
        "high": high,
        "values": [base64.b64encode(one.tobytes()).decode() for one in data],
    }


def _texts(batch: Any, rows: int) -> list[tuple[str, Sequence[str]]]:
    """Lists of strings that came with the batch: names, or the sentences themselves."""
    held = batch.items() if isinstance(batch, dict) else enumerate(batch) if _is_row(batch) else ()
    return [
        (str(name), value[:EXAMPLES])
        for name, value in held
        if _is_row(value) and len(value) == rows and all(isinstance(v, str) for v in value)
    ]


def _is_row(value: Any) -> bool:
    return isinstance(value, (list, tuple))
