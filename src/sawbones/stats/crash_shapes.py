"""Whether shapes fit: the arithmetic that torch did when it refused."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sawbones.schema import Bound, Construction

Shape = tuple[int, ...]
# Declared size -> where it stands among the positional arguments of the constructor.
_POSITION = {
    "in_features": 0,
    "in_channels": 0,
    "num_features": 0,
    "normalized_shape": 0,
    "num_channels": 1,
    "input_size": 0,
    "embed_dim": 0,
    "d_model": 0,
    "in1_features": 0,
    "in2_features": 1,
    "weight": 0,
}
_LAST_AXIS = {
    "in_features": "columns",
    "input_size": "features per step",
    "embed_dim": "features",
    "d_model": "features",
}


@dataclass(frozen=True)
class Misfit:
    """A size that a layer declares against the one that it is given."""

    setting: str
    expected: int
    got: int
    unit: str  # columns, channels, features
    axis: int


def misfit(module: Bound, shape: Shape, second: bool = False) -> Misfit | None:
    """None where the widths agree."""
    held = module.settings
    if not shape:
        return None
    if "in1_features" in held:
        name = "in2_features" if second else "in1_features"
        return _differ(name, held[name], shape[-1], "columns", len(shape) - 1)
    for name, unit in _LAST_AXIS.items():
        if isinstance(held.get(name), int):
            return _differ(name, held[name], shape[-1], unit, len(shape) - 1)
    if "in_channels" in held:
        axis = len(shape) - len(_spatial(module)) - 1
        if axis in (0, 1):
            return _differ("in_channels", held["in_channels"], shape[axis], "channels", axis)
    if "normalized_shape" in held and len(held["normalized_shape"]) == 1:
        wanted = held["normalized_shape"][0]
        return _differ("normalized_shape", wanted, shape[-1], "features", len(shape) - 1)
    for name in ("num_features", "num_channels"):
        if isinstance(held.get(name), int) and len(shape) > 1:
            return _differ(name, held[name], shape[1], "channels", 1)
    return None


def _differ(name: str, expected: int, got: int, unit: str, axis: int) -> Misfit | None:
    return Misfit(name, int(expected), int(got), unit, axis) if expected != got else None


def _spatial(module: Bound) -> list[int]:
    size = module.settings.get("kernel_size")
    return list(size) if isinstance(size, (list, tuple)) else []


def dimensions(module: Bound) -> tuple[int, ...]:
    """Numbers of axes that a layer of torch accepts, batch included and first; () for any."""
    held, name = module.settings, module.cls
    if "in_channels" in held and _spatial(module):
        return (len(_spatial(module)) + 2, len(_spatial(module)) + 1)
    for layer, accepted in (("1d", (3, 2)), ("2d", (4,)), ("3d", (5,))):
        if name in (f"BatchNorm{layer}", f"InstanceNorm{layer}"):
            return accepted
    for layer, wanted in (("1d", 3), ("2d", 4), ("3d", 5)):
        if name.endswith(f"Pool{layer}"):
            return (wanted, wanted - 1)
    if "input_size" in held:
        return (2, 1) if name.endswith("Cell") else (3, 2)
    if name == "MultiheadAttention":
        return (3, 2)
    return ()


def too_small(module: Bound, shape: Shape) -> tuple[int, int] | None:
    """(kernel, size with padding) along the first axis on which the kernel is larger."""
    raw = module.settings.get("kernel_size")
    pads = module.settings.get("padding", 0)
    if raw is None:
        return None
    digit = module.cls[-2:-1]
    axes = len(raw) if isinstance(raw, (list, tuple)) else int(digit) if digit.isdigit() else 0
    kernels = raw if isinstance(raw, (list, tuple)) else [raw] * axes
    padding = pads if isinstance(pads, (list, tuple)) else [pads] * axes
    for kernel, pad, size in zip(kernels, padding, shape[-axes:] if axes else (), strict=False):
        if isinstance(kernel, int) and isinstance(pad, int) and kernel > size + 2 * pad:
            return kernel, size + 2 * pad
    return None


def broadcast_clash(a: Shape, b: Shape) -> tuple[int, int, int] | None:
    """(axis counted from the end, size of a, size of b) where two shapes cannot be broadcast."""
    for number, (left, right) in enumerate(zip(reversed(a), reversed(b), strict=False), start=1):
        if left != right and 1 not in (left, right):
            return -number, left, right
    return None


def product_clash(a: Shape, b: Shape) -> tuple[int, int] | None:
    """(columns of a, rows of b) where a matrix product cannot be made."""
    if not a or not b:
        return None
    rows = b[-2] if len(b) > 1 else b[-1]
    return (a[-1], rows) if a[-1] != rows else None


def joining_clash(shapes: Sequence[Shape], axis: int) -> tuple[int, int] | None:
    """(which of them, which axis) differs from the first, other than along `axis`."""
    first = shapes[0] if shapes else ()
    for number, shape in enumerate(shapes[1:], start=1):
        if len(shape) != len(first):
            return number, -1
        for place, (left, right) in enumerate(zip(first, shape, strict=True)):
            if left != right and place != axis % max(len(first), 1):
                return number, place
    return None


def view_clash(shape: Shape, wanted: Sequence[int]) -> str:
    """Why values of one shape cannot be viewed as another: count, layout or ""."""
    known = prod(size for size in wanted if size != -1)
    total = prod(shape)
    if -1 in wanted:
        return "count" if not known or total % known else "layout"
    return "count" if known != total else "layout"


def rewritten(built: Construction, setting: str, size: int) -> tuple[str, str] | None:
    """(the constructor's call, the same with another size) where the size is an argument of it."""
    argument = _argument(built, setting)
    if argument is None or argument.end_col_offset is None:
        return None
    text = built.text
    return text, f"{text[: argument.col_offset]}{size}{text[argument.end_col_offset :]}"


def argument_names(built: Construction, setting: str) -> list[str]:
    """Names that the size of a constructor comes from; none where it is written as a number."""
    argument = _argument(built, setting)
    found = ast.walk(argument) if argument is not None else ()
    return [ast.unparse(n) for n in found if isinstance(n, (ast.Name, ast.Attribute))]


def _argument(built: Construction, setting: str) -> ast.expr | None:
    try:
        call = ast.parse(built.text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call):
        return None
    place = _POSITION.get(setting, -1)
    words = {word.arg: word.value for word in call.keywords}
    return words.get(setting) or (call.args[place] if 0 <= place < len(call.args) else None)


def written(shape: Shape) -> str:
    if len(shape) == 1:
        return f"{shape[0]} values" if shape[0] != 1 else "1 value"
    return " x ".join(map(str, shape)) if shape else "a single number"
