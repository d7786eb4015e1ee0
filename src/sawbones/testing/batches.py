"""What the collate function gives: shapes, dtypes, lengths, padding, masks and bounds of every
batch, with the sample that breaks the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sawbones.testing.wording import broken

if TYPE_CHECKING:
    from torch import Tensor

Dim = int | str  # a number, or a letter that stands for one size within a batch
LONGEST_LISTED = 6


@dataclass(frozen=True)
class _Batch:
    number: int
    parts: dict[str, Tensor]
    samples: Sequence[Any] = ()  # what the sampler drew, where that is known
    made_of: Sequence[Any] | None = None  # what the collate function was given, if it is the user's

    def example(self, index: int) -> str:
        place = f"batch {self.number}, example {index}"
        if index >= len(self.samples):
            return place
        order = _order(self.parts, self.made_of) if self.made_of is not None else None
        if order is None:
            return f"sample {self.samples[index]!r}, {place}"
        if index in order:
            return f"sample {self.samples[order[index]]!r}, {place}"
        known = set(order.values())
        left = [str(one) for n, one in enumerate(self.samples) if n not in known]
        return f"one of the samples {', '.join(left[:LONGEST_LISTED])}, {place}"

    def part(self, name: str) -> Tensor:
        if name not in self.parts:
            raise broken(
                f"batch {self.number} has no part {name!r}", f"one of {', '.join(self.parts)}"
            )
        return self.parts[name]


def assert_batches(
    loader: Iterable[Any],
    *,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    ignore_index: int = -100,
    tokens: str | None = None,
    pad_id: int | None = None,
    mask: str | None = None,
    lengths: str | None = None,
    most: int = 16,
) -> None:
    """The first `most` batches are alike, finite, and hold to what is said of them.

    Parts are named by their keys ("input_ids", "inputs.image"), those of a tuple by their number
    ("0"), a lone tensor by "". shapes: sizes, or letters that stand for one size within a batch:
    {"input_ids": ("B", "T"), "labels": ("B", "T")}. bounds: the lowest and highest value, as of
    labels, token ids and positions; ignore_index is let through. With tokens and pad_id: padding
    stands at one end, no example is all padding, `mask` (1 or True: a token) marks exactly the
    rest, and `lengths` counts it.
    """
    first: _Batch | None = None
    for batch in _batches(loader, most):
        first = first or batch
        _alike(batch, first)
        for name, tensor in batch.parts.items():
            _finite(batch, name, tensor)
        _shaped(batch, shapes or {})
        for name, dtype in (dtypes or {}).items():
            if batch.part(name).dtype != dtype:
                raise broken(f"{name!r} is {batch.part(name).dtype}", dtype)
        for name, (low, high) in (bounds or {}).items():
            _bounded(batch, name, low, high, ignore_index)
        if tokens is not None and pad_id is not None:
            _padded(batch, tokens, pad_id, mask, lengths)
    if first is None:
        raise broken("the loader gives no batch", "at least 1")


def _batches(loader: Any, most: int) -> Iterator[_Batch]:
    """A loader over a data set with indices is driven by hand, so that samples have names."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset, default_collate

    by_index = isinstance(loader, DataLoader) and not isinstance(loader.dataset, IterableDataset)
    with torch.random.fork_rng(devices=[]):
        if by_index and loader.batch_sampler is not None:
            for number, drawn in enumerate(islice(loader.batch_sampler, most)):
                rows = list(drawn)
                samples = [loader.dataset[index] for index in rows]
                own = None if loader.collate_fn is default_collate else list(samples)
                yield _Batch(number, dict(_parts(loader.collate_fn(samples))), rows, own)
        else:
            for number, given in enumerate(islice(loader, most)):
                yield _Batch(number, dict(_parts(given)))


def _order(parts: Mapping[str, Tensor], samples: Sequence[Any]) -> dict[int, int] | None:
    """example -> sample, as far as their values tell. None where nothing says that the collate
    function has moved them: then they stand as they were drawn.
    """
    from sawbones.observe.batch_rows import fits, sample_parts

    made_of = [sample_parts(sample) for sample in samples]
    order: dict[int, int] = {}
    for tensor in parts.values():
        if tensor.dim() < 2 or tensor.shape[0] > len(samples):
            continue  # single numbers are alike by chance
        for index, row in enumerate(tensor):
            found = [n for n, own in enumerate(made_of) if fits(row, own)]
            if len(found) == 1:
                order.setdefault(index, found[0])
    moved = any(index != n for index, n in order.items())
    if not moved or len(set(order.values())) < len(order):
        return None
    if len(order) == len(samples) - 1:  # the one that is left
        (index,) = set(range(len(samples))) - order.keys()
        (order[index],) = set(range(len(samples))) - set(order.values())
    return order


def _parts(thing: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    import torch

    if isinstance(thing, torch.Tensor):
        yield name, thing
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from _parts(value, f"{name}.{key}" if name else str(key))
    elif isinstance(thing, (list, tuple)):
        for index, value in enumerate(thing):
            yield from _parts(value, f"{name}.{index}" if name else str(index))


def _alike(batch: _Batch, first: _Batch) -> None:
    if set(batch.parts) != set(first.parts):
        listed = ", ".join(map(repr, batch.parts))
        raise broken(
            f"batch {batch.number} has the parts {listed}", ", ".join(map(repr, first.parts))
        )
    for name, tensor in batch.parts.items():
        before = first.parts[name]
        for what, found, wanted in (
            ("dtype", tensor.dtype, before.dtype),
            ("number of dimensions", tensor.dim(), before.dim()),
        ):
            if found != wanted:
                raise broken(
                    f"batch {batch.number}: {name!r} has the {what} {found}",
                    f"{wanted}, as in batch {first.number}",
                )
    sizes = {name: len(t) for name, t in batch.parts.items() if t.dim()}
    if len(batch.samples) and len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name!r} {size}" for name, size in sizes.items())
        raise broken(
            f"batch {batch.number}: parts have different numbers of examples ({listed})",
            f"{len(batch.samples)} each",
        )


def _finite(batch: _Batch, name: str, tensor: Tensor) -> None:
    if tensor.is_floating_point():
        found = (~tensor.isfinite()).nonzero()
        if len(found):
            raise broken(_value(batch, name, tensor, found), "finite values")


def _shaped(batch: _Batch, shapes: Mapping[str, Sequence[Dim]]) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    for name, wanted in shapes.items():
        found = tuple(batch.part(name).shape)
        told = f"batch {batch.number}: {name!r} has the shape {found}"
        if len(found) != len(wanted):
            raise broken(told, f"({', '.join(map(str, wanted))})")
        for size, dim in zip(found, wanted, strict=True):
            if isinstance(dim, str):
                known, other = sizes.setdefault(dim, (size, name))
                if known != size:
                    raise broken(told, f"{dim} = {known}, as in {other!r}")
            elif size != dim:
                raise broken(told, f"({', '.join(map(str, wanted))})")


def _bounded(batch: _Batch, name: str, low: float, high: float, ignore_index: int) -> None:
    tensor = batch.part(name)
    wrong = ((tensor < low) | (tensor > high)) & (tensor != ignore_index)
    found = wrong.nonzero()
    if len(found):
        raise broken(_value(batch, name, tensor, found), f"{low:g} to {high:g}")


def _value(batch: _Batch, name: str, tensor: Tensor, found: Tensor) -> str:
    place = tuple(int(n) for n in found[0])
    at = f", position {', '.join(map(str, place[1:]))}" if place[1:] else ""
    value = tensor[place].item()
    return (
        f"{batch.example(place[0]) if place else f'batch {batch.number}'}{at}: {name!r} is "
        f"{value:g}, and {len(found)} of {tensor.numel()} in all"
    )


def _padded(batch: _Batch, tokens: str, pad_id: int, mask: str | None, lengths: str | None) -> None:
    real = batch.part(tokens) != pad_id
    counts = real.sum(dim=-1)
    for index, row in enumerate(real):
        count, listed = int(counts[index]), row.int().tolist()
        if not count:
            raise broken(f"{batch.example(index)}: {tokens!r} is all padding", "a token")
        inner = sorted(listed) != listed and sorted(listed, reverse=True) != listed
        if inner:
            start = [i for i, is_token in enumerate(listed) if not is_token][:LONGEST_LISTED]
            raise broken(
                f"{batch.example(index)}: {pad_id} of padding stands between tokens (positions "
                f"{', '.join(map(str, start))})",
                "padding at one end",
            )
    if mask is not None:
        marked = batch.part(mask)
        if marked.shape != real.shape:
            raise broken(f"{mask!r} has the shape {tuple(marked.shape)}", tuple(real.shape))
        wrong = (marked.bool() != real).nonzero()
        if len(wrong):
            index, position = (int(n) for n in wrong[0][:2])
            kind = "a token" if bool(real[index, position]) else "padding"
            raise broken(
                f"{batch.example(index)}, position {position}: {mask!r} is "
                f"{marked[index, position].item()} at {kind}, and {len(wrong)} of {real.numel()} "
                "in all",
                "1 at tokens and 0 at padding",
            )
    if lengths is not None:
        given = batch.part(lengths)
        for index in (given != counts).nonzero().flatten().tolist():
            raise broken(
                f"{batch.example(index)}: {lengths!r} is {int(given[index])}", int(counts[index])
            )
