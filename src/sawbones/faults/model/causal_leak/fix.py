"""A causal mask for the attention that has none; the right diagonal for one that shows too much;
windows that end where they belong.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import (
    Edit,
    add_argument,
    keyword_of,
    rename_attribute,
    replace,
    set_keyword,
)
from sawbones.fixing.expressions import in_brackets, is_library_call, operand
from sawbones.fixing.names import full_name, is_simple, spelled, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

# Layer -> (the argument for the mask, the number of the argument whose length it has)
MASKED = {
    "Transformer": ("tgt_mask", 1),
    "TransformerDecoder": ("tgt_mask", 0),
    "TransformerDecoderLayer": ("tgt_mask", 0),
    "TransformerEncoder": ("mask", 0),
    "TransformerEncoderLayer": ("src_mask", 0),
    "MultiheadAttention": ("attn_mask", 0),
}


def fix(case: Case) -> Iterator[Change]:
    seen: set[tuple[Edit, ...]] = set()
    for source, site in case.places():
        for node in list(source.nodes_at(site.line)):
            if not isinstance(node, ast.Call):
                continue
            for summary, edits in _changes(case, source, node):
                if edits not in seen:
                    seen.add(edits)
                    yield Change(summary, edits)


def _changes(case: Case, source: Source, call: ast.Call) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    name = called_name(call)
    if name == "scaled_dot_product_attention":
        causal = set_keyword(source, call, "is_causal", "True", 5)
        yield "Let no position see later ones: is_causal=True.", (causal,)
    elif name in ("tril", "triu"):
        yield from _diagonal(source, call, "0" if name == "tril" else "1")
    elif name in ("softmax", "log_softmax"):
        yield from _by_hand(source, call)
    elif name == "pad" and is_library_call(source, call):
        yield from _padding(source, call)
    else:
        yield from _settings(source, call)
        yield from _layer(case, source, call)


def _diagonal(source: Source, call: ast.Call, right: str) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    method = operand(source, call) is getattr(call.func, "value", None)
    given = keyword_of(call, "diagonal", 0 if method else 1)
    if given is not None and source.text_of(given) != right:
        yield f"Begin the mask at diagonal {right}.", (replace(source, given, right),)
        name, other = ("triu", "1") if called_name(call) == "tril" else ("tril", "0")
        if isinstance(call.func, ast.Attribute):
            edits = (rename_attribute(source, call.func, name), replace(source, given, other))
            yield f"Take the other side of the diagonal: {name}.", edits
    elif given is None and right == "1":
        yield "Begin the mask at diagonal 1.", (add_argument(source, call, "diagonal=1"),)


def _padding(source: Source, call: ast.Call) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """All of it in front."""
    amounts = keyword_of(call, "pad", 1)
    if not isinstance(amounts, (ast.Tuple, ast.List)) or len(amounts.elts) != 2:
        return
    front, behind = amounts.elts
    rest = behind if isinstance(behind, ast.BinOp) and isinstance(behind.op, ast.Sub) else None
    if rest is not None and ast.dump(rest.right) == ast.dump(front):
        total = source.text_of(rest.left)  # s // 2 and s - s // 2
    elif ast.dump(front) == ast.dump(behind):
        total = f"2 * {in_brackets(source, front)}"
    else:
        total = f"{source.text_of(front)} + {in_brackets(source, behind)}"
    edits = (replace(source, front, total), replace(source, behind, "0"))
    yield f"Pad in front only, by {total}.", edits


def _settings(source: Source, call: ast.Call) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """What a model is built with so that it sees both sides."""
    both = keyword_of(call, "bidirectional")
    if isinstance(both, ast.Constant) and both.value is True:
        yield "Read in one direction.", (replace(source, both, "False"),)
    padding = keyword_of(call, "padding")
    if isinstance(padding, ast.BinOp) and isinstance(padding.op, ast.FloorDiv):
        text = source.text_of(padding.left)
        yield f"Pad by {text}, of which the end is cut off.", (replace(source, padding, text),)
    for given in call.args[:1]:
        made = value_of(source, given)
        if not isinstance(made, ast.Call) or made is given:
            continue
        if full_name(source, made.func).startswith("transformers."):
            yield (
                "Build it as a decoder: is_decoder=True.",
                (set_keyword(source, made, "is_decoder", "True"),),
            )


def _by_hand(source: Source, call: ast.Call) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    scores = operand(source, call)
    if scores is None or not is_simple(scores):
        return
    ones, imports = spelled(source, "torch.ones_like")
    boolean, _ = spelled(source, "torch.bool")
    text = in_brackets(source, scores)
    hidden = f"{ones}({text}, dtype={boolean}).triu(1)"
    masked = f'{text}.masked_fill({hidden}, float("-inf"))'
    yield (
        "Hide later positions before the softmax.",
        (*imports, replace(source, scores, masked)),
    )


def _layer(case: Case, source: Source, call: ast.Call) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    written = source.text_of(call.func)
    last = written.rsplit(".", 1)[-1]
    for module in case.run.modules:
        if module.cls not in MASKED or module.path.rsplit(".", 1)[-1] != last:
            continue
        mask, number = MASKED[module.cls]
        if len(call.args) <= number or keyword_of(call, mask) is not None:
            continue
        given = _sized(call.args[number])
        if given is None:
            continue
        time = 1 if _batch_first(case, module.path) else 0
        size = f"{source.text_of(given)}.size({time})"
        ones, imports = spelled(source, "torch.ones")
        boolean, _ = spelled(source, "torch.bool")
        device = f"device={source.text_of(given)}.device"
        text = f"{ones}({size}, {size}, dtype={boolean}, {device}).triu(1)"
        yield (
            f"Let no position see later ones: {mask}.",
            (*imports, add_argument(source, call, f"{mask}={text}")),
        )
        return


def _sized(given: ast.expr) -> ast.expr | None:
    """What is handed over, or what it was made of, as far as it is a name: it is as long."""
    while isinstance(given, ast.Call) and given.args:
        given = given.args[0]
    return given if is_simple(given) and not isinstance(given, ast.Constant) else None


def _batch_first(case: Case, path: str) -> bool:
    """Of the layer, or of a layer in it."""
    inside = [m for m in case.run.modules if m.path == path or m.path.startswith(path + ".")]
    return any(m.settings.get("batch_first") for m in inside)
