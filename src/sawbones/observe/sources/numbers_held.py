"""Numbers and small arrays that a script holds from line to line: what may have been fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.containers import (
    LEAST_ROWS,
    MEMBERS_HELD,
    as_array,
    is_plain_object,
    kind_of,
)


def held_values(scope: Mapping[str, Any]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Real numbers and small arrays of them, held by a frame or by an object of it: what may have
    been fitted.
    """
    for name, value in list(scope.items()):
        if name.startswith("__"):
            continue
        small = _small(value)
        if small is not None:
            yield name, small
        elif isinstance(value, (tuple, list)) and len(value) <= 8:
            for i, item in enumerate(value):
                if (small := _small(item)) is not None:
                    yield f"{name}[{i}]", small
        elif kind_of(value) is None and is_plain_object(value):
            for key, item in list(vars(value).items())[:MEMBERS_HELD]:
                if (small := _small(item)) is not None:
                    yield f"{name}.{key}", small


def _small(value: Any) -> npt.NDArray[Any] | None:
    if isinstance(value, (float, np.floating)):
        return np.array([value], np.float64)
    kind = kind_of(value)
    if kind not in ("array", "tensor", "column"):
        return None
    plain = as_array(value, kind)
    if plain is None or plain.dtype.kind != "f" or not 0 < plain.size <= 4096:
        return None
    if plain.ndim and len(plain) >= LEAST_ROWS:
        return None  # followed as rows
    return plain
