"""Small rewrites of expressions: taking a call away, wrapping an operand, another dimension."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from sawbones.fixing.editing import Edit, EditRefused, keyword_of, rename_attribute, replace
from sawbones.fixing.names import bound_in, full_name, spelled, value_of
from sawbones.fixing.recipes import Case
from sawbones.fixing.source import Source, called_name

MASKS = (
    "mask",
    "attn_mask",
    "src_mask",
    "tgt_mask",
    "memory_mask",
    "key_padding_mask",
    "src_key_padding_mask",
    "tgt_key_padding_mask",
    "memory_key_padding_mask",
)
FILLING = ("masked_fill", "masked_fill_")
_WHOLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


def in_brackets(source: Source, node: ast.expr) -> str:
    """The text of a node, so that a method or a sign can stand behind it."""
    text = source.text_of(node)
    return text if isinstance(node, _WHOLE) else f"({text})"


def plus(source: Source, node: ast.expr, text: str) -> Edit:
    """`node + text`, in the brackets that stand around it already where there are any."""
    start, stop = source.span(node)
    around = source.utf8[:start].rstrip()[-1:] + source.utf8[stop:].lstrip()[:1]
    parent = source.parents.get(node)
    argument = isinstance(parent, ast.Call) and node in parent.args
    if around == b"()" or argument:
        return Edit(source.file, stop, stop, f" + {text}")
    return Edit(source.file, start, stop, f"({source.text_of(node)} + {text})")


def is_library_call(source: Source, call: ast.Call) -> bool:
    """`torch.softmax(x)` and `F.softmax(x)`, not `x.softmax()`."""
    return full_name(source, call.func).startswith(("torch.", "numpy.", "math."))


def operand(source: Source, call: ast.Call) -> ast.expr | None:
    """What a function or a method works on."""
    if is_library_call(source, call) or isinstance(call.func, ast.Name):
        given = keyword_of(call, "input", 0)
        return given if not isinstance(given, ast.Starred) else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def unwrapped(source: Source, call: ast.Call) -> Edit:
    """The call goes, what it works on stays."""
    kept = operand(source, call)
    if kept is None:
        raise EditRefused("nothing would be left of the call")
    return replace(source, call, source.text_of(kept))


def with_operand(source: Source, call: ast.Call, text: str) -> Edit:
    """Another expression in the place of what the call works on."""
    given = operand(source, call)
    if given is None:
        raise EditRefused("the call works on nothing")
    return replace(source, given, text)


def constructor(source: Source, call: ast.Call) -> ast.Call | None:
    """Of `criterion(a, b)` the call that made the criterion."""
    made = value_of(source, call.func)
    return made if isinstance(made, ast.Call) and made is not call else None


def without_layer(source: Source, call: ast.Call) -> tuple[Edit, ...]:
    """A layer that is made here does nothing any more; what is numbered behind it keeps its name."""
    identity, imports = spelled(source, "torch.nn.Identity")
    return (*imports, replace(source, call, f"{identity}()"))


def calls_near(case: Case, *names: str) -> Iterator[tuple[Source, ast.Call]]:
    """Calls of these names at the places of the finding, each once."""
    seen: set[tuple[str, int, int]] = set()
    for source, call in case.calls(*names):
        key = (source.file, call.lineno, call.col_offset)
        if key not in seen:
            seen.add(key)
            yield source, call


def removed_activation(
    case: Case, functions: tuple[str, ...], layers: tuple[str, ...]
) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """(what goes, the edits) for a function or a layer that is applied once too often."""
    for source, call in calls_near(case, *functions):
        yield source.text_of(call), (unwrapped(source, call),)
    for source, call in calls_near(case, *layers):
        yield source.text_of(call), without_layer(source, call)


def in_comparison(source: Source, line: int) -> Iterator[ast.Compare]:
    for node in source.nodes_at(line):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield node


def turned(source: Source, node: ast.expr) -> Edit:
    """`==` for `!=` and the other way round, and the like for orders."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise EditRefused("no comparison")
    left, right = source.text_of(node.left), source.text_of(node.comparators[0])
    opposite = {
        ast.Eq: "!=",
        ast.NotEq: "==",
        ast.Lt: ">=",
        ast.GtE: "<",
        ast.Gt: "<=",
        ast.LtE: ">",
    }
    sign = opposite.get(type(node.ops[0]))
    if sign is None:
        raise EditRefused("no comparison that can be turned")
    return replace(source, node, f"{left} {sign} {right}")


def inverted(source: Source, node: ast.expr) -> Edit:
    """A mask that says the opposite."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return replace(source, node, source.text_of(node.operand))
    return replace(source, node, f"~{in_brackets(source, node)}")


def mask_arguments(call: ast.Call) -> list[ast.expr]:
    """Masks that are handed to an attention or to what fills hidden scores."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in MASKS]
    name = called_name(call)
    place = 0 if name in FILLING else 3 if name == "scaled_dot_product_attention" else -1
    if place >= 0 and len(call.args) > place:
        given.append(call.args[place])
    return [node for node in given if not isinstance(node, (ast.Starred, ast.Constant))]


def sizes_in(inside: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, int]]:
    """(x, the axis as it is written, its number) of each `x.size(0)` and `x.shape[0]`."""
    for node in ast.walk(inside):
        if isinstance(node, ast.Call) and len(node.args) == 1:
            what, axis, name = node.func, node.args[0], "size"
        elif isinstance(node, ast.Subscript):
            what, axis, name = node.value, node.slice, "shape"
        else:
            continue
        number = axis.value if isinstance(axis, ast.Constant) else None
        if isinstance(what, ast.Attribute) and what.attr == name and isinstance(number, int):
            yield what.value, axis, number


def renamed(source: Source, call: ast.Call, name: str) -> Edit:
    """Another function or class of the same module."""
    if isinstance(call.func, ast.Attribute):
        return rename_attribute(source, call.func, name)
    known = bound_in(source.tree)
    if name not in known:
        raise EditRefused(f"{name} is not known here")
    return replace(source, call.func, name)


def made_or_called(case: Case, names: Collection[str]) -> Iterator[tuple[Source, ast.Call]]:
    """Functions of these names that the places call, and layers of these names that they use."""
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            for call in (node, constructor(source, node)) if isinstance(node, ast.Call) else ():
                if isinstance(call, ast.Call) and called_name(call) in names:
                    yield source, call
