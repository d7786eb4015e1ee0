"""Map-style datasets -> a table, without importing torch: whatever has a length and gives a sample
by its number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

MOST_SAMPLES = 200_000
WIDEST = (
    64  # a vector up to this long becomes columns; a longer one its statistics and a fingerprint
)


def is_samples(source: Any) -> bool:
    return (
        hasattr(source, "__len__")
        and hasattr(source, "__getitem__")
        and not isinstance(source, (str, bytes, Mapping))
    )


def samples_table(source: Any, notes: list[str], role: str) -> Any:
    import pandas as pd
    import pyarrow as pa

    count = len(source)
    step = max(1, -(-count // MOST_SAMPLES))
    if step > 1:
        notes.append(f"{role}: every {step}th of {count:,} samples was read")
    rows = [dict(_columns(source[index])) for index in range(0, count, step)]
    if not rows:
        return pa.table({"x": pa.array([], pa.float64())})
    return pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)


def _columns(sample: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(sample, Mapping):
        for name, value in sample.items():
            yield from _value(str(name), value)
    elif isinstance(sample, (tuple, list)) and len(sample) == 2:
        yield from _value("x", sample[0])
        yield from _value("label", sample[1])
    elif isinstance(sample, (tuple, list)) and any(not isinstance(v, (int, float)) for v in sample):
        for index, value in enumerate(sample):
            yield from _value(f"x{index}", value)
    else:
        yield from _value("x", sample)


def _value(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if value is None or isinstance(value, (str, bool, int, float)):
        yield name, value
        return
    if hasattr(value, "detach"):  # a tensor, on whatever device, of whatever dtype
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        value = value.numpy()
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.asarray(str(value))
    if array.dtype.kind not in "biuf":
        yield name, str(value)
    elif array.ndim == 0:
        yield name, array.item()
    elif array.ndim == 1 and len(array) <= WIDEST and array.dtype.kind == "f":
        for index, item in enumerate(array.tolist()):
            yield f"{name}_{index}", item
    else:
        numbers = array.astype(np.float64).ravel()
        shape = "x".join(map(str, array.shape))
        yield (
            f"{name}_fingerprint",
            f"{shape}:{hashlib.md5(np.ascontiguousarray(array).tobytes()).hexdigest()}",
        )
        known = numbers[np.isfinite(numbers)]
        if len(known):
            yield from (
                (f"{name}_mean", float(known.mean())),
                (f"{name}_std", float(known.std())),
                (f"{name}_min", float(known.min())),
                (f"{name}_max", float(known.max())),
            )
        if len(known) < len(numbers):
            yield f"{name}_nonfinite", len(numbers) - len(known)
