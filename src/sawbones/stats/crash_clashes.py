"""Values whose shapes do not fit in a view, an einsum, a mask or a loss: what would fit."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod

from sawbones.schema import Bound
from sawbones.stats.crash_shapes import broadcast_clash, view_clash, written
from sawbones.stats.crashes import Given, Refusal

VIEWING = ("view", "reshape", "view_as", "unflatten")
Shape = tuple[int, ...]
_ATTENTION = ("bsz", "num_heads", "tgt_len", "src_len")  # as torch names them
MOST_ORDERED = 5  # operands of an einsum whose orders are tried


@dataclass(frozen=True)
class Clash:
    title: str
    expected: str
    got: str
    fix: str
    exactly: tuple[float, float] | None


def listed(call: Refusal) -> list[Given]:
    """The tensors of a list that is written out, each as the user wrote it."""
    for operand in call.expression.operands:
        items = operand.bound.items if operand.bound is not None else ()
        if items and all(item.kind == "tensor" for item in items):
            names = _elements(operand.text)
            same = len(names) == len(items)
            texts = names if same else [f"{operand.text}[{i}]" for i in range(len(items))]
            return [Given(name, item) for name, item in zip(texts, items, strict=True)]
    return []


def _elements(text: str) -> list[str]:
    try:
        written_out = ast.parse(text, mode="eval").body
    except SyntaxError:
        return []
    if not isinstance(written_out, (ast.List, ast.Tuple)):
        return []
    return [ast.unparse(part) for part in written_out.elts]


# -- views


def viewed_clash(call: Refusal) -> Clash | None:
    operands = call.expression.operands
    if call.name not in VIEWING or not operands:
        return None
    if operands[0].bound is None and flattens(call):
        return _in_pieces(operands[0].text, "a tensor")
    wanted = _asked([o.bound for o in operands[1:]])
    if not wanted or operands[0].bound is None or operands[0].bound.kind != "tensor":
        return None
    shape, name = operands[0].bound.shape, operands[0].text
    asked = " x ".join(map(str, wanted))
    total = prod(shape)
    if view_clash(shape, wanted) == "layout":
        return _in_pieces(name, written(shape))
    known = prod(size for size in wanted if size != -1)
    return Clash(
        f"{name} has {total} values and is to become {asked}",
        f"a multiple of {known} values" if -1 in wanted else f"{known} values",
        f"{total} ({name} is {written(shape)})",
        _view_advice(name, shape, wanted),
        (total, known),
    )


def _view_advice(name: str, shape: Shape, wanted: list[int]) -> str:
    first = shape[0] if shape else 1
    row = prod(shape[1:])
    kept = 0
    while kept < len(wanted) - 1 and kept < len(shape) and wanted[kept] == shape[kept]:
        kept += 1
    if kept > 1:
        left = prod(shape[kept:])
        return (
            f"{name} has {left} values in each of {written(shape[:kept])}, not "
            f"{prod(wanted[kept:])}: bring it to the sizes that the line asks for before, or take "
            f"them from {name} itself."
        )
    advice = f"Let the batch keep its size: {name}.view({name}.size(0), -1) gives {first} x {row}."
    if wanted[0] == -1 and len(wanted) == 2 and wanted[1] != row:
        advice += f" The layer behind it has to be built for {row} columns then, not {wanted[1]}."
    return advice


def flattens(call: Refusal) -> bool:
    """view(-1): a single axis fits any number of values."""
    sizes = [o.text.replace(" ", "") for o in call.expression.operands[1:]]
    return call.name == "view" and sizes == ["-1"]


def _in_pieces(name: str, what: str) -> Clash:
    return Clash(
        f"{name} cannot be viewed without copying it",
        "values that lie one after another",
        f"{what} after a transpose, permute or slice",
        f"Use {name}.reshape(...) in place of view(...).",
        None,
    )


def _asked(sizes: Sequence[Bound | None]) -> list[int]:
    """The sizes as numbers; none where one of them is computed by a call on the line itself."""
    if len(sizes) == 1 and sizes[0] is not None and sizes[0].kind == "sequence":
        sizes = sizes[0].items
    known = [b for b in sizes if b is not None and b.kind == "number" and b.value is not None]
    return [int(b.value or 0) for b in known] if len(known) == len(sizes) else []


# -- labels


def labels_clash(name: str, scores: Given, target: Given) -> Clash | None:
    """Classes on axis 1, one label for everything else."""
    a, b = scores.bound.shape, target.bound.shape
    wanted = (a[0], *a[2:]) if len(a) > 1 else ()
    if b == wanted or not a:
        return None
    whole = target.bound.dtype.startswith("int")
    cast = "" if whole else ".long()"
    if b == (*wanted, 1):
        fix = f"Remove the last axis of the labels: {target.name}.squeeze(-1){cast}."
    elif len(a) > 2 and b == (a[0], 1, *a[2:]):
        fix = (
            f"Remove the axis of size 1 and use whole numbers: {target.name}.squeeze(1)"
            f"{cast or '.long()'}."
        )
    elif len(a) == 3 and b == a[:2]:
        fix = f"The classes belong on axis 1: {scores.name}.transpose(1, 2)."
    elif len(a) == 3 and len(b) == 2 and a[0] == b[0]:
        shorter = min(a[1], b[1])
        fix = (
            f"{scores.name} holds {a[1]} steps of {a[2]} classes, {target.name} {b[1]} steps: cut "
            f"both to the same {shorter} (or pack both by length), then the classes belong on axis "
            f"1: {scores.name}[:, :{shorter}].transpose(1, 2), {target.name}[:, :{shorter}]."
        )
    elif len(b) == 1 and a[0] != b[0]:
        fix = (
            f"Keep one row per label on the way to {scores.name}: "
            "x.view(x.size(0), -1) instead of view(-1, n)."
        )
    else:
        fix = f"Give one label per row: a shape of {written(wanted)}."
    return Clash(
        f"{name} is given scores of {written(a)} and labels of {written(b)}",
        f"labels of {written(wanted)}, one for each row of {scores.name}",
        written(b),
        fix,
        (prod(b), prod(wanted)) if prod(b) != prod(wanted) else (len(b), len(wanted)),
    )


# -- einsum and masks


def einsum_clash(call: Refusal) -> Clash | None:
    """One letter, two sizes."""
    operands = call.expression.operands
    text = (
        operands[0].bound.keys[0]
        if operands and operands[0].bound and operands[0].bound.keys
        else ""
    )
    inputs = text.replace(" ", "").partition("->")[0].split(",")
    tensors = [o for o in operands[1:] if o.bound is not None and o.bound.kind == "tensor"]
    if call.name != "einsum" or len(inputs) != len(tensors) or "..." in text:
        return None
    known: dict[str, tuple[int, str]] = {}
    for letters, operand in zip(inputs, tensors, strict=True):
        shape = operand.bound.shape if operand.bound is not None else ()
        if len(letters) != len(shape):
            return Clash(
                f"einsum names {len(letters)} axes of {operand.text}, which has {len(shape)}",
                f"{len(letters)} axes ({letters})",
                f"{len(shape)} ({written(shape)})",
                f"Write one letter for each axis of {operand.text}, or give it the axis.",
                (len(shape), len(letters)),
            )
        for letter, size in zip(letters, shape, strict=True):
            before = known.setdefault(letter, (size, operand.text))
            if before[0] != size and 1 not in (before[0], size):
                return Clash(
                    f"einsum {text!r}: {letter} is {before[0]} in {before[1]} and {size} in "
                    f"{operand.text}",
                    f"{before[0]} along {letter} in {operand.text} too",
                    f"{size} ({operand.text} is {written(shape)})",
                    _other_order(inputs, [(o.text, o.bound.shape) for o in tensors if o.bound])
                    or f"Make {operand.text} with {before[0]} along the axis {letter} (the layer "
                    f"that gives it has {size} outputs), or give the axes different letters.",
                    (size, before[0]),
                )
    return None


def _other_order(inputs: Sequence[str], given: Sequence[tuple[str, Shape]]) -> str:
    """Advice where exactly one other order of the operands fits the letters."""
    if len(given) > MOST_ORDERED:
        return ""
    orders = [p for p in permutations(given) if _one_size_each(inputs, [s for _, s in p])]
    if len(orders) != 1:
        return ""
    names = ", ".join(name for name, _ in orders[0])
    return f"The operands fit these letters in another order: {names}."


def _one_size_each(inputs: Sequence[str], shapes: Sequence[Shape]) -> bool:
    known: dict[str, int] = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        if len(letters) != len(shape):
            return False
        if any(known.setdefault(a, size) != size for a, size in zip(letters, shape, strict=True)):
            return False
    return True


def mask_clash(call: Refusal) -> Clash | None:
    """x[mask] with a mask of another shape."""
    operands = call.expression.operands
    if call.expression.kind != "subscript" or len(operands) != 2:
        return None
    owner, mask = operands
    if owner.bound is None or mask.bound is None or mask.bound.dtype not in ("bool", "uint8"):
        return None
    a, b = owner.bound.shape, mask.bound.shape
    pairs = [(i, x, y) for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if not pairs:
        return None
    axis, have, given = pairs[0]
    cut = ", ".join([":"] * axis + [f"{given - have}:" if given > have else f":{given}"])
    fix = f"Make the mask for {owner.text}: give it {have} along axis {axis}."
    if given == have + 1:
        fix = (
            f"{mask.text} has one more along axis {axis}: {owner.text} is one step shorter, so cut "
            f"the mask the same way, {mask.text}[{cut}] where the first step was left out."
        )
    return Clash(
        f"{mask.text} ({written(b)}) is no mask for {owner.text} ({written(a)})",
        f"{have} along axis {axis}, as in {owner.text}",
        f"{given} in {mask.text}",
        fix,
        (given, have),
    )


def attention_clash(call: Refusal, held: Mapping[str, Bound]) -> tuple[Given, Clash] | None:
    """A mask of nn.MultiheadAttention, against the sizes that it had computed when it refused."""
    sizes = [held[name].value for name in _ATTENTION if name in held]
    if len(sizes) != len(_ATTENTION) or None in sizes:
        return None
    batch, heads, queries, keys = (int(size or 0) for size in sizes)
    for name in ("attn_mask", "key_padding_mask"):
        bound = held.get(name)
        if bound is None or bound.kind != "tensor":
            continue
        wanted: Shape = (batch, keys)
        if name == "attn_mask":
            wanted = (queries, keys) if len(bound.shape) == 2 else (batch * heads, queries, keys)
        if bound.shape == wanted:
            continue
        given = Given(_as_written(call, name, bound), bound)
        fix = f"Make it {written(wanted)}: " + (
            f"{queries} queries by {keys} keys of this batch."
            if len(wanted) == 2 and name == "attn_mask"
            else f"one row for each of {batch} examples, one column for each of {keys} keys."
            if name == "key_padding_mask"
            else f"one layer for each of {batch} examples and {heads} heads."
        )
        if bound.shape == (batch, queries, keys) and name == "attn_mask":
            fix = (
                f"Give every head its layer: {given.name}.repeat_interleave({heads}, dim=0) is "
                f"{written(wanted)}, in the order (example, head)."
            )
        pairs = [(a, b) for a, b in zip(bound.shape, wanted, strict=False) if a != b]
        title = f"{call.layer} is given {name} of {written(bound.shape)}"
        return given, Clash(
            f"{title} and needs {written(wanted)}",
            f"{written(wanted)} for {batch} examples, {heads} heads, {queries} queries and {keys} "
            "keys",
            f"{written(bound.shape)} ({given.name})",
            fix,
            pairs[0] if pairs else (len(bound.shape), len(wanted)),
        )
    return None


def _as_written(call: Refusal, name: str, bound: Bound) -> str:
    for operand in call.expression.operands:
        same = operand.bound is not None and operand.bound.shape == bound.shape
        of_same_kind = not operand.keyword or operand.keyword.endswith(name)
        if operand.keyword == name or (same and of_same_kind):
            return operand.text
    return name


def swapped(a: Shape, b: Shape) -> tuple[int, int] | None:
    """Two axes of b that have to change places for it to fit a."""
    for i, j in combinations(range(len(b)), 2):
        other = list(b)
        other[i], other[j] = other[j], other[i]
        if len(a) == len(b) and broadcast_clash(a, tuple(other)) is None:
            return i, j
    return None
