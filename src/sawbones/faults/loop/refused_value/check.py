"""A value of a form that the call cannot take

## What it sees
The record of a crash at a call of torch: several values where one is taken (item, float, a
format), a tensor for an optimizer that is the result of an operation, an array with negative
strides or of objects, a checkpoint with objects that only full unpickling reads, a folder that does not exist. Fires on the step of the crash.

## Why it matters
The script ends here.

## Looks like
ValueError: can't optimize a non-leaf Tensor, RuntimeError: a Tensor with 20 elements cannot be
converted to Scalar, or UnpicklingError: Weights only load failed.

## Example
    noise = torch.randn(8, requires_grad=True) * 0.01
    optimizer = torch.optim.SGD([noise], lr=0.1)

## Use instead
    noise = (torch.randn(8) * 0.01).requires_grad_()
    optimizer = torch.optim.SGD([noise], lr=0.1)

## Confirm it
Nothing is left to confirm: the form of the value is in the record.

## False alarms
Shapes, dtypes, devices and values that were not unpacked are named by faults of their own.

## References
A flipped image given to from_numpy; settings saved as an object beside the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Expression, Finding, Fix, Operand, Run, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crash_values import num_values, runs_backwards
from sawbones.stats.crashes import (
    crash,
    deliberate,
    frame_of,
    inner_frame,
    makers,
    names_of,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse",)
EXPERIMENT = None
_MAKING = ("tensor", "from_numpy", "as_tensor", "FloatTensor", "LongTensor", "Tensor")
_ONE = ("item", "float", "int")
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    expression = frame.expression
    if deliberate(died) or expression is None:
        raise NothingToJudge("no value was refused")
    found = (
        _no_leaf(run, frame, expression)
        or _several(run, frame, expression)
        or _array(run, frame, expression)
        or _objects_in_checkpoint(run, frame, expression)
        or _no_folder(run, frame, expression)
    )
    if found is not None:
        yield found


def _no_leaf(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """An optimizer is given the result of an operation."""
    adding = frame_of(crash(run), "add_param_group", "torch.optim")
    param = adding.values.get("param") if adding is not None else None
    if param is None or param.kind != "tensor" or not param.node:
        return None
    names = [name for o in expression.operands for name in names_of(o.text)]
    name = next((n for n in names if _same(frame.values.get(n), param)), "the tensor")
    made = [a for a in makers(run, name) if a.text]
    root = made[0] if made else None
    fix = f"Ask for gradients after the operation: {name} = (...).detach().requires_grad_()."
    if root is not None:
        text = re.sub(r",?\s*requires_grad\s*=\s*True", "", root.text)
        fix = f"Ask for gradients after the operation: {name} = ({text}).requires_grad_()."
    return explained(
        run,
        f"{name} is the result of an operation ({param.node}), which no optimizer can change",
        (root.site if root is not None else None, frame.site),
        Fix(fix),
        expected="a leaf: a tensor that was made directly, or a parameter",
        got=f"{name}, made by {param.node}",
        because=f"{name} comes from {root.text} (line {root.site.line})" if root else "",
        sizes=[Size(name, written(param.shape), param.node)],
    )


def _same(bound: Bound | None, other: Bound) -> bool:
    return bound is not None and (bound.shape, bound.node) == (other.shape, other.node)


def _several(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """One number is asked of a tensor with an axis."""
    formatting = frame_of(crash(run), "__format__", "torch")
    bound = formatting.values.get("self") if formatting is not None else None
    name = ""
    if bound is None and expression.kind == "call" and expression.name in _ONE:
        first = expression.operands[0] if expression.operands else None
        bound, name = (first.bound, first.text) if first is not None else (None, "")
    if bound is None or bound.kind != "tensor" or not bound.shape:
        return None
    if not name:
        same = [n for n, b in frame.values.items() if b == bound and n in frame.site.code]
        name = same[0] if same else "the tensor"
    count = num_values(bound)
    one = count == 1
    if one and formatting is None:
        return None
    made = [a for a in makers(run, name) if a.text]
    way = f"{name}.item()" if one else f"{name}.mean().item()"
    return explained(
        run,
        f"{name} has the shape {written(bound.shape)} and is used as a single number",
        (frame.site, *(a.site for a in made[:2])),
        Fix(f"Make it one number first: {way}."),
        expected="a tensor of one value" if not one else "a number, or a tensor without an axis",
        got=f"{count} values" if not one else "one value in a tensor with an axis",
        because=f"{name} comes from {made[0].text} (line {made[0].site.line})" if made else "",
        sizes=[Size(name, written(bound.shape), bound.dtype)],
    )


def _array(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    if expression.kind != "call" or expression.name not in _MAKING or not expression.operands:
        return None
    given = expression.operands[0]
    if given.bound is not None and runs_backwards(given.bound):
        made = [a for a in makers(run, given.text) if a.text]
        return explained(
            run,
            f"{given.text} is an array that was flipped: torch cannot share its memory",
            (frame.site, *(a.site for a in made[:2])),
            Fix(f"Copy it first: {expression.name}({given.text}.copy())."),
            expected="an array with positive strides",
            got=f"strides {given.bound.settings.get('strides')}",
            because="[::-1] and flip only turn the direction in which the memory is read",
            sizes=[Size(given.text, written(given.bound.shape), given.bound.dtype)],
        )
    return _objects(run, frame, expression, given)


def _objects(run: Run, frame: CrashFrame, expression: Expression, given: Operand) -> Finding | None:
    """An array of Python objects, or a table whose columns have no common number type."""
    if "TypeError" not in crash(run).classes:
        return None
    bound = given.bound
    name, kinds = given.text, ""
    if bound is None or bound.kind != "array":
        tables = [(n, frame.values.get(n)) for n in names_of(given.text)]
        table = next((b for _, b in tables if b is not None and b.kind == "table"), None)
        if table is None:
            return None
        kinds = _column_kinds(table)
        advice = f"{name.removesuffix('.values')}.to_numpy(dtype='float32')"
    elif bound.dtype == "object":
        advice = f"{name}.astype('float32')"
    else:
        return None
    made = [a.site for a in makers(run, name) if a.text]
    return explained(
        run,
        f"{name} is an array of Python objects, of which no tensor can be made",
        (frame.site, *made[:2]),
        Fix(
            f"Make all of it numbers first: {advice}. Columns of words have to be encoded, and "
            "rows of different length padded, before that."
        ),
        expected="an array of numbers of one type",
        got=f"dtype object{f' ({kinds})' if kinds else ''}",
        because="columns of different types have only object in common" if kinds else "",
        sizes=[Size(name, kinds or written(bound.shape) if bound is not None else kinds)],
    )


def _column_kinds(table: Bound) -> str:
    dtypes = [str(kind) for kind in table.settings.get("dtypes") or ()]
    pairs = list(zip(table.keys, dtypes, strict=False))
    return ", ".join(f"{name} {kind}" for name, kind in pairs[:8])


def _objects_in_checkpoint(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    loading = frame_of(crash(run), "load", "torch.serialization")
    if loading is None or "UnpicklingError" not in crash(run).classes:
        return None
    named = _GLOBAL.search(crash(run).message)
    if named is None:
        return None
    full = named[1]
    name = full.rpartition(".")[2]
    path = loading.values.get("f")
    name_of_file = path.keys[0].rpartition("/")[2] if path is not None and path.keys else ""
    saves = [
        event.site
        for event in run.of_kind("save")
        if name_of_file and str(event.data.get("path", "")).endswith(name_of_file)
    ]
    writes = [a.site for o in expression.operands[:1] for a in makers(run, o.text)]
    call = expression.text.removesuffix(")")
    plain = "float(value)" if full.startswith("numpy") else f"vars({name.lower()})"
    return explained(
        run,
        f"The checkpoint holds an object of {full}, and torch.load reads only weights by default",
        (frame.site, *saves[-1:], *writes[:1]),
        Fix(
            f"If the file is your own: {call}, weights_only=False); or with "
            f"torch.serialization.add_safe_globals([{name}]) before. Better: save plain values "
            f"({plain}) in place of the object."
        ),
        expected="tensors, numbers, texts, lists and dicts",
        got=f"an object of the class {full}",
        because="since torch 2.6 torch.load has weights_only=True unless it is told otherwise",
    )


def _no_folder(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """torch.save, open and others that write into a folder that is not there."""
    died = crash(run)
    saving = frame_of(died, "save", "torch.serialization")
    path = saving.values.get("f") if saving is not None else None
    missing = "FileNotFoundError" in died.classes
    if path is None and missing:
        texts = [o.bound for o in expression.operands if o.bound is not None]
        path = next((b for b in texts if b.kind == "text"), None)
    if path is None or path.kind != "text" or not path.keys:
        return None
    if not missing and "RuntimeError" not in died.classes:
        return None
    folder = path.keys[0].rpartition("/")[0]
    if saving is None and not _writes(expression):
        return _no_file(run, frame, expression, path.keys[0])
    if not folder:
        return None
    names = [name for o in expression.operands for name in names_of(o.text)]
    made = [a.site for name in names for a in makers(run, name) if folder in a.site.code]
    return explained(
        run,
        f"{folder} does not exist, and a file is to be written into it",
        (frame.site, *made[:1]),
        Fix(f"Make the folder before: os.makedirs({folder!r}, exist_ok=True)."),
        expected=f"a folder {folder}",
        got="none",
        because="saving makes the file, and not the folders above it",
    )


def _writes(expression: Expression) -> bool:
    modes = [o.bound.keys[0] for o in expression.operands[1:] if o.bound and o.bound.keys]
    return any(mode[:1] in ("w", "a", "x") for mode in modes)


def _no_file(run: Run, frame: CrashFrame, expression: Expression, path: str) -> Finding:
    names = [name for o in expression.operands[:1] for name in names_of(o.text)]
    made = [a.site for name in names for a in makers(run, name) if a.text]
    return explained(
        run,
        f"There is no file {path}",
        (frame.site, *made[:1]),
        Fix(
            f"Give the path of a file that is there. {path} is looked for from the folder that "
            "the script is started in; Path(__file__).parent makes it independent of that."
        ),
        expected="a file that exists",
        got=path,
    )
