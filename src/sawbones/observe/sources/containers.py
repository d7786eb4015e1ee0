"""What holds rows of data: arrays, tensors, pandas tables and columns, lists of texts, numbers and
records. Their rows are read as numbers and hashed, and can be changed in place.

Neither torch nor pandas is imported here: a value can only be theirs once the script has done so.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_VALUES = 1 << 22  # of one container
FEW_KINDS = 20  # values of whole numbers: labels, groups or categories rather than measurements
LEAST_ROWS = FEW_KINDS + 1  # fewer may be a list of classes; a fold of a small study has not many
FAR = 10.0  # spreads by which real numbers are moved
_AT_ONCE = 1 << 15  # values that are hashed together
MEMBERS_HELD = 64  # members of an object that are looked at

Hashes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """One look at a container."""

    numbers: Numbers  # rows x values; texts stand as one number each
    names: tuple[str, ...]  # of the columns, where they have names
    hashes: Hashes  # of whole rows, as float32: what a model is given
    is_text: bool = False
    dates: tuple[int, ...] = ()  # columns that hold moments; they stand as days
    index: Hashes | None = None  # of pandas: one number for each label, where none comes twice
    shape: tuple[int, ...] = ()  # of one row


def read(value: Any) -> Rows | None:
    """None for what holds no rows, or too many."""
    kind = kind_of(value)
    if kind is None or len(value) < LEAST_ROWS:
        return None
    names: tuple[str, ...] = ()
    dates: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    if kind == "table":
        if len(value) * max(1, len(value.columns)) > MAX_VALUES:
            return None
        plain_columns = [value.iloc[:, i].to_numpy() for i in range(len(value.columns))]
        columns = [_column(c) for c in plain_columns]
        dates = tuple(i for i, c in enumerate(plain_columns) if _days(c) is not None)
        names = tuple(str(c) for c in value.columns)
        numbers = np.stack(columns, axis=1) if columns else np.zeros((len(value), 0), np.float32)
    elif kind in ("records", "tuples"):
        keys = _keys(value)
        names = tuple(str(k) for k in keys)
        if len(value) * len(names) > MAX_VALUES or any(len(r) != len(names) for r in value):
            return None
        fields = [_field(value, k) for k in keys]
        numbers = np.stack([_column(f) for f in fields], axis=1)
        dates = tuple(i for i, f in enumerate(fields) if _days(np.asarray(f)) is not None)
    else:
        plain = as_array(value, kind)
        if plain is None or plain.size > MAX_VALUES or len(plain) != len(value):
            return None
        numbers = _column(plain.reshape(-1)).reshape(len(plain), -1)
        shape = plain.shape[1:]
    is_text = kind in ("texts", "tokens")
    index = _index_of(value, kind)
    return Rows(numbers, names, hash_rows(numbers), is_text, dates, index, shape)


def _index_of(value: Any, kind: str) -> Hashes | None:
    """Labels of rows follow them through every selection, sort and join of pandas."""
    if kind not in ("table", "column") or not value.index.is_unique:
        return None
    labels = value.index.to_numpy()
    if labels.dtype.kind in "iuM":
        return np.asarray(labels.astype(np.int64))
    words = [zlib.crc32(str(v).encode("utf-8", "replace")) for v in labels.tolist()]
    return np.array(words, np.int64) if len(set(words)) == len(words) else None


def _keys(value: Sequence[Any]) -> list[Any]:
    return list(value[0]) if isinstance(value[0], dict) else list(range(len(value[0])))


def _field(value: Sequence[Any], key: Any) -> list[Any]:
    if isinstance(value[0], dict):
        return [r.get(key) for r in value]
    return [r[key] for r in value]


def _set_field(value: Any, row: int, key: Any, new: Any) -> None:
    """Of a record, or of a tuple, which is replaced by another."""
    if isinstance(value[row], dict):
        value[row][key] = new
    else:
        changed = list(value[row])
        changed[key] = new
        value[row] = type(value[row])(changed)


def kind_of(value: Any) -> str | None:
    """array, tensor, table, column, texts, tokens, numbers, lists, records or tuples."""
    torch = sys.modules.get("torch")
    if isinstance(value, np.ndarray):
        return "array" if value.ndim and value.dtype.kind in "fiubOU" else None
    tensor: Any = getattr(torch, "Tensor", ())
    if torch is not None and isinstance(value, tensor):
        plain = type(value) is torch.Tensor and value.device.type == "cpu" and value.dim() > 0
        dense = plain and value.layout is torch.strided and not value.is_complex()
        return "tensor" if dense and not value.requires_grad else None
    if type(value).__module__.split(".")[0] == "pandas":
        if hasattr(value, "columns") and hasattr(value, "iloc"):
            return "table"
        return "column" if hasattr(value, "iloc") and hasattr(value, "to_numpy") else None
    if type(value) is list and len(value) >= LEAST_ROWS:
        return _kind_of_list(value)
    return None


def _kind_of_list(value: Sequence[Any]) -> str | None:
    first = value[0]
    if isinstance(first, str):
        return "texts" if all(isinstance(v, str) for v in value) else None
    if isinstance(first, (int, float)):
        return "numbers" if all(isinstance(v, (int, float)) for v in value) else None
    if isinstance(first, dict) and first:
        return "records" if all(isinstance(v, dict) for v in value) else None
    if isinstance(first, (list, tuple)) and first:
        return _kind_of_nested(value)
    if _is_array(first):
        return "arrays" if all(_is_array(v) and v.shape == first.shape for v in value) else None
    return None


def _is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is not None and isinstance(value, tensor):
        return bool(value.device.type == "cpu" and not value.is_sparse and not value.is_complex())
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def _kind_of_nested(value: Sequence[Any]) -> str | None:
    """Of a list of lists or tuples: lists of numbers, texts cut into tokens, or tuples of a text
    and what belongs to it.
    """
    first = value[0]
    if not all(isinstance(v, (list, tuple)) for v in value):
        return None
    same = all(len(v) == len(first) for v in value)
    if same and isinstance(first, tuple) and any(isinstance(x, str) for x in first):
        plain = all(isinstance(x, (str, int, float)) for v in value for x in v)
        if plain:
            return "tuples"
    if isinstance(first[0], (int, float)):
        return "lists" if same else None
    words = isinstance(first[0], str) and all(isinstance(x, str) for v in value for x in v)
    return "tokens" if words else None


def as_array(value: Any, kind: str) -> npt.NDArray[Any] | None:
    if kind == "tensor":
        torch = sys.modules["torch"]
        with torch.no_grad(), torch._C.DisableTorchFunction():
            plain = value.detach()
            if plain.is_floating_point() and plain.dtype not in (torch.float32, torch.float64):
                plain = plain.float()
            return np.asarray(plain.numpy())
    if kind == "column":
        return np.asarray(value.to_numpy())
    if kind == "lists":
        return np.asarray(value, np.float64) if _all_numbers(value) else None
    if kind == "arrays":
        size = len(value) * int(np.prod(value[0].shape))
        return np.stack([_plain_array(v) for v in value]) if size <= MAX_VALUES else None
    if kind == "tokens":
        return np.array(["\0".join(v) for v in value], object)
    return np.asarray(value)


def _plain_array(value: Any) -> npt.NDArray[Any]:
    found = as_array(value, "array" if isinstance(value, np.ndarray) else "tensor")
    return found if found is not None else np.zeros(0)


def _all_numbers(value: Sequence[Any]) -> bool:
    return all(isinstance(x, (int, float)) for row in value for x in row)


def _column(values: Any) -> Numbers:
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    days = _days(array)
    if days is not None:
        return days
    return np.array([_number(v) for v in array.tolist()], np.float32)


def _days(array: npt.NDArray[Any]) -> Numbers | None:
    """Moments as days; texts only where all of them are dates as ISO 8601 writes them."""
    if array.dtype.kind in "OU":
        first = array.reshape(-1)[0] if array.size else None
        if not isinstance(first, str) or not 8 <= len(first) <= 30 or first[4:5] != "-":
            return None
        try:
            array = array.astype("datetime64[s]")
        except (TypeError, ValueError):
            return None
    if array.dtype.kind != "M":
        return None
    seconds = array.astype("datetime64[s]").astype(np.int64)
    return (seconds / 86400.0).astype(np.float32)


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, (bool, int, float)):
        return float(value)
    return float(zlib.crc32(str(value).encode("utf-8", "replace")) & 0xFFFFFF)


def hash_rows(numbers: Numbers) -> Hashes:
    """Equal rows give equal values; the place within a row counts."""
    found: Hashes = np.empty(len(numbers), np.int64)
    # some rows at a time, so that what is made on the way stays in the cache
    many = max(1, _AT_ONCE // max(1, numbers.shape[1]))
    for at in range(0, len(numbers), many):
        part = np.ascontiguousarray(numbers[at : at + many] + np.float32(0)).view(np.int32)
        found[at : at + many] = part.astype(np.int64) @ _weights(part.shape[1])
    return found


@lru_cache(maxsize=16)
def _weights(width: int) -> Hashes:
    """An odd number for each place of a row. A stream of our own: the host's stay untouched."""
    rng = np.random.default_rng(0x50C3)
    odd: Hashes = rng.integers(-(2**62), 2**62, size=width, dtype=np.int64) * 2 + 1
    return odd


def held_rows(scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, container) of the variables of a frame, of members of the script's own objects, of
    small collections, and of data sets in them.
    """
    for name, value in list(scope.items()):
        if name.startswith("__"):
            continue
        if kind_of(value) is not None:
            yield name, value
        elif is_plain_object(value):
            members = list(vars(value).items())[:MEMBERS_HELD]
            for key, member in members:
                yield from _held_in(f"{name}.{key}", member)
        else:
            yield from _held_in(name, value)


def _held_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Of a collection, or of a data set of torch (those of a loader, or of a part of it)."""
    if kind_of(value) is not None:
        yield name, value
    elif isinstance(value, dict) and len(value) <= MEMBERS_HELD:
        yield from ((f"{name}[{k!r}]", v) for k, v in list(value.items()) if kind_of(v))
    elif isinstance(value, (list, tuple)) and len(value) < LEAST_ROWS:
        yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if kind_of(v))
    elif _is_data_set(value):
        yield from held_rows(
            {f"{name}.{k}": v for k, v in list(vars(value).items())[:MEMBERS_HELD]}
        )


def _is_data_set(value: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(value, data.Dataset) and hasattr(value, "__dict__")


def is_plain_object(value: Any) -> bool:
    """An object with members of its own that is neither a module, a class nor a model."""
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    torch = sys.modules.get("torch")
    nn = getattr(torch, "nn", None)
    module = getattr(nn, "Module", None)
    if module is not None and isinstance(value, module):
        return False
    if type(value).__module__.split(".")[0] == "pandas":
        return False  # an index holds nothing of its own
    return type(value).__name__ not in ("module", "function")


# changes in place


def change_rows(value: Any, rows: Places, only_reals: bool = False) -> bool:
    """Real numbers of these rows are moved far, whole numbers of many kinds take the largest of
    their column, texts lose their order. What is missing stays missing, and whole numbers of few
    kinds (labels, groups, categories) stay as they are. True where anything was changed.
    """
    kind = kind_of(value)
    if kind == "table":
        changed = False
        for i in range(len(value.columns)):
            new = _moved(value.iloc[:, i].to_numpy(), rows, only_reals)
            if new is not None:
                value.isetitem(i, new)
                changed = True
        return changed
    if kind in ("records", "tuples"):
        return _change_records(value, rows, only_reals)
    if kind == "tokens":
        return not only_reals and _change_tokens(value, rows)
    if kind in ("texts", "numbers", "lists"):
        new = _moved(as_array(value, kind), rows, only_reals)
        if new is None:
            return False
        for i in rows.tolist():
            value[i] = type(value[i])(new[i].tolist() if kind == "lists" else new[i])
        return True
    if kind == "arrays":
        return _change_list(value, rows, only_reals)
    return kind is not None and _change_array(value, kind, rows, only_reals)


def _change_list(value: list[Any], rows: Places, only_reals: bool) -> bool:
    """Of arrays: the changed ones are others, since those of the script may be parts of one."""
    new = _moved(as_array(value, "arrays"), rows, only_reals)
    if new is None:
        return False
    for i in rows.tolist():
        old = value[i]
        moved = np.ascontiguousarray(new[i]).astype(new.dtype)
        value[i] = moved if isinstance(old, np.ndarray) else old.new_tensor(moved)
    return True


def _change_tokens(value: list[Any], rows: Places) -> bool:
    """Every token loses its order, so that a bag of them is another one."""
    changed = False
    for i in rows.tolist():
        new = type(value[i])(word[::-1] for word in value[i])
        changed |= new != value[i]
        value[i] = new
    return changed


def _change_records(value: list[Any], rows: Places, only_reals: bool) -> bool:
    changed = False
    for key in _keys(value):
        new = _moved(np.asarray(_field(value, key)), rows, only_reals)
        if new is not None:
            for i in rows.tolist():
                plain = new[i].item() if isinstance(new[i], np.generic) else new[i]
                _set_field(value, i, key, plain)
            changed = True
    return changed


def _change_array(value: Any, kind: str, rows: Places, only_reals: bool) -> bool:
    plain = as_array(value, kind)
    new = None if plain is None or _overlaps_itself(plain) else _moved(plain, rows, only_reals)
    if new is None:
        return False
    if kind == "tensor":
        torch = sys.modules["torch"]
        with torch.no_grad(), torch._C.DisableTorchFunction():
            picked = torch.from_numpy(rows)
            value[picked] = torch.from_numpy(np.ascontiguousarray(new[rows])).to(value.dtype)
        return True
    if kind == "column":
        value.iloc[rows] = new[rows]
        return True
    if not value.flags.writeable:
        return False
    value[rows] = new[rows]
    return True


def _moved(plain: npt.NDArray[Any] | None, rows: Places, only_reals: bool) -> Any:
    """The same array with other values in these rows; None where they have to stay."""
    if plain is None or not len(plain):
        return None
    if plain.dtype.kind == "f":
        return None if is_of_few_kinds(plain) else _far(plain, rows)
    if only_reals:
        return None
    if plain.dtype.kind in "iu":
        return None if plain.ndim != 1 or is_of_few_kinds(plain) else _largest(plain, rows)
    words = plain.dtype.kind in "OU" and plain.ndim == 1 and not is_of_few_kinds(plain)
    if not words or not all(isinstance(v, str) for v in plain[rows]):
        return None
    new = plain.astype(object)
    for i in rows.tolist():
        new[i] = str(plain[i])[::-1]  # as long as before: what is padded to the longest stays
    return new


def _far(plain: npt.NDArray[Any], rows: Places) -> npt.NDArray[Any]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of nothing but missing values
        finite = np.where(np.isfinite(plain), plain, np.nan)
        center = np.nan_to_num(np.nanmean(finite, axis=0))
        spread = np.sqrt(np.nan_to_num(np.nanmean((finite - center) ** 2, axis=0)))
    new = plain.copy()
    new[rows] = (plain[rows] * 1.5 + FAR * spread).astype(plain.dtype)
    return new


def _largest(plain: npt.NDArray[Any], rows: Places) -> npt.NDArray[Any]:
    new = plain.copy()
    new[rows] = plain.max()
    return new


def is_of_few_kinds(plain: npt.NDArray[Any]) -> bool:
    """Whole numbers or words of few kinds, or a number of its own for each row (an id)."""
    if plain.dtype.kind == "f":
        finite = plain[np.isfinite(plain)]
        if not len(finite) or not np.array_equal(finite, np.round(finite)):
            return False
        return len(np.unique(finite)) <= FEW_KINDS
    if plain.dtype.kind in "OU":
        words = [str(v) for v in plain.tolist()]
        return len(set(words)) <= max(FEW_KINDS, len(words) // 10)
    kinds = len(np.unique(plain))
    return kinds <= max(FEW_KINDS, len(plain) // 10) or kinds == len(plain)


def copy_rows(value: Any, rows: Places, taken: Places) -> bool:
    """These rows become copies of others, whole. True where the container was written to."""
    kind = kind_of(value)
    if kind == "table":
        for i in range(len(value.columns)):
            old = value.iloc[:, i].to_numpy()
            new = old.copy()
            new[rows] = old[taken]
            value.isetitem(i, new)
        return True
    if kind == "column":
        value.iloc[rows] = value.iloc[taken].to_numpy()
        return True
    if kind in ("records", "tuples", "texts", "tokens", "numbers", "lists", "arrays"):
        old_rows = [value[i] for i in taken.tolist()]
        for i, row in zip(rows.tolist(), old_rows, strict=True):
            value[i] = dict(row) if kind == "records" else row
        return True
    if kind == "array" and not value.flags.writeable:
        return False
    plain = as_array(value, kind) if kind in ("array", "tensor") else None
    if plain is None or _overlaps_itself(plain):
        return False
    plain[rows] = plain[taken].copy()  # of a tensor it is the same memory
    return True


def _overlaps_itself(plain: npt.NDArray[Any]) -> bool:
    """Windows that are a view of one series: who changes one changes its neighbours. More values
    than there is memory between the first and the last.
    """
    steps = zip(plain.shape, plain.strides, strict=True)
    spanned = sum((size - 1) * abs(stride) for size, stride in steps) + plain.itemsize
    return bool(spanned < plain.nbytes)


def scramble_columns(value: Any, columns: Sequence[int]) -> bool:
    """The values of these columns change places among all rows, together."""
    kind = kind_of(value)
    order = np.random.default_rng(0).permutation(len(value))
    if kind == "table":
        for i in columns:
            value.isetitem(i, value.iloc[:, i].to_numpy()[order])
        return True
    if kind in ("records", "tuples"):
        for key in (_keys(value)[i] for i in columns):
            field = _field(value, key)
            for i, j in enumerate(order.tolist()):
                _set_field(value, i, key, field[j])
        return True
    plain = as_array(value, kind) if kind in ("array", "tensor") else None
    if plain is None or not plain.flags.writeable or plain.ndim > 2:
        return False
    flat = plain.reshape(len(plain), -1)
    flat[:, list(columns)] = flat[order][:, list(columns)]  # of a tensor it is the same memory
    return True


def label_column(value: Any, column: int) -> npt.NDArray[Any] | None:
    """The labels among what a container holds; None where they are no words or numbers."""
    kind = kind_of(value)
    found: npt.NDArray[Any] | None = None
    if kind in ("table", "column"):
        found = (value.iloc[:, column] if kind == "table" else value).to_numpy()
    elif kind in ("records", "tuples"):
        found = np.asarray(_field(value, _keys(value)[column]))
    elif kind in ("array", "tensor"):
        found = as_array(value, kind)
    if found is None or found.size != len(found):
        return None
    plain = found.reshape(-1)
    if plain.dtype.kind == "O":
        return np.array([str(v) for v in plain.tolist()])
    return plain if plain.dtype.kind in "biufU" else None


def turn_labels(value: Any, column: int, rows: Places, taken: Places) -> bool:
    """Each of these rows gets the value of one column that the row in `taken` has."""
    kind = kind_of(value) if len(rows) else ""
    if kind == "table":
        old = value.iloc[:, column].to_numpy()
        new = old.copy()
        new[rows] = old[taken]
        value.isetitem(column, new)
        return bool(np.any(new[rows] != old[rows]))
    if kind in ("records", "tuples"):
        field = _field(value, key := _keys(value)[column])
        for i, j in zip(rows.tolist(), taken.tolist(), strict=True):
            _set_field(value, i, key, field[j])
        return True
    if kind == "column":
        value.iloc[rows] = value.iloc[taken].to_numpy()
        return True
    if kind in ("array", "tensor") and (kind == "tensor" or value.flags.writeable):
        plain = as_array(value, kind)
        if plain is None or plain.size != len(plain):
            return False
        plain[rows] = plain[taken].copy()  # of a tensor it is the same memory
        return True
    return False
