"""States of the random streams, read on every step for about two microseconds and set again in a
replay.

Python's and NumPy's own getters build 600 objects a time, a tenth of a short step; the words of
both generators lie in memory and are copied as they are. Where that memory does not look as
expected, the getters are used after all.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from typing import Any

import torch

_WORDS = 624
_SIZE = 4 * _WORDS + 4
_HEADER = (
    object.__basicsize__
)  # of a Python object; the index and the words of random.Random follow


class Streams:
    def __init__(self) -> None:
        self._python = _find_python()
        self._numpy: _Words | None = None
        self._numpy_known = False

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = {"torch": torch.default_generator.get_state()}
        if self._python is not None:
            found["python"] = self._python.read()
            found["gauss"] = random._inst.gauss_next  # type: ignore[attr-defined, unused-ignore]
        else:
            found["python"], found["gauss"] = _python_bytes()
        if "numpy.random" in sys.modules:
            if not self._numpy_known:
                self._numpy_known, self._numpy = True, _find_numpy()
            found["numpy"] = self._numpy.read() if self._numpy is not None else _numpy_bytes()
        if (
            torch.cuda._initialized
        ):  # asking whether there is one takes longer than all of the above
            found["cuda"] = [generator.get_state() for generator in torch.cuda.default_generators]
        return found


class _Words:
    """The words of one generator and its position among them, where they lie. Drawing moves the
    position; all words are made anew
    when it has passed the last one, so the same position beside the same first word means that
    nothing was drawn."""

    def __init__(self, at: int, position: int) -> None:
        self._all = (ctypes.c_char * _SIZE).from_address(at)
        self._position = ctypes.c_uint32.from_address(at + position)
        self._word = ctypes.c_uint32.from_address(at + (0 if position else 4))
        self._seen = (-1, -1)
        self._copy = b""

    def read(self) -> bytes:
        now = (self._position.value, self._word.value)
        if now != self._seen:
            self._seen, self._copy = now, self._all.raw
        return self._copy


def _find_python() -> _Words | None:
    if sys.implementation.name != "cpython":
        return None
    words = _Words(id(random._inst) + _HEADER, 0)  # type: ignore[attr-defined, unused-ignore]
    return words if words.read() == _python_bytes()[0] else None


def _python_bytes() -> tuple[bytes, float | None]:
    _, words, gauss = random.getstate()
    return struct.pack(f"={_WORDS + 1}I", words[-1], *words[:-1]), gauss


def _numpy_bytes() -> bytes | None:
    state = sys.modules["numpy.random"].get_state()
    return state[1].tobytes() + struct.pack("=I", state[2]) if state[0] == "MT19937" else None


def _find_numpy() -> _Words | None:
    generator = getattr(
        getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None), "_bit_generator", None
    )
    if generator is None or type(generator).__name__ != "MT19937":
        return None
    words = _Words(int(generator.ctypes.state_address), 4 * _WORDS)
    return words if words.read() == _numpy_bytes() else None


def restore(state: dict[str, Any]) -> None:
    torch.default_generator.set_state(state["torch"])
    index, *words = struct.unpack(f"={_WORDS + 1}I", state["python"])
    random.setstate((3, (*words, index), state.get("gauss")))
    if state.get("numpy") is not None:
        import numpy

        *keys, position = struct.unpack(f"={_WORDS + 1}I", state["numpy"])
        numpy.random.set_state(("MT19937", numpy.array(keys, dtype=numpy.uint32), position, 0, 0.0))
    for number, cuda in enumerate(state.get("cuda") or ()):
        if torch.cuda.is_available() and number < torch.cuda.device_count():
            torch.cuda.set_rng_state(cuda, number)
