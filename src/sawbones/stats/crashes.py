"""What torch or Python refused, read off the record of a crash."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sawbones.schema import Assignment, Bound, Crash, CrashFrame, Expression, Run, Site

_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "DataParallel")
_OF_TORCH = ("torch", "opt_einsum")  # what einsum asks for the order of its products
_NOTHING = CrashFrame(Site("", 0), True)


@dataclass(frozen=True)
class Given:
    """One argument of the call that was refused."""

    name: str  # as the user wrote it, or as the called function names it
    bound: Bound


@dataclass(frozen=True)
class Refusal:
    """The innermost call of torch, with what it was given. `name`: the function or operator."""

    name: str
    module: Bound | None
    given: tuple[Given, ...]
    frame: CrashFrame  # of the user's code
    expression: Expression
    handed_on: bool = False  # by nn.Sequential, from the layer in front of it

    @property
    def tensors(self) -> tuple[Given, ...]:
        return tuple(g for g in self.given if g.bound.kind == "tensor")

    @property
    def layer(self) -> str:
        """Class and name of the module."""
        if self.module is None:
            return self.name
        written = self.expression.name if self.expression.called == self.module else ""
        path = self.module.path or written
        return f"{self.module.cls} {path}".strip()


def crash(run: Run) -> Crash:
    found = run.ending.crash
    assert found is not None  # a check that asks has named crash_record among its needs
    return found


def inner_frame(died: Crash) -> CrashFrame:
    """The user's innermost frame."""
    return next((frame for frame in reversed(died.frames) if frame.user), _NOTHING)


def library_frames(died: Crash) -> list[CrashFrame]:
    """What ran below the user's innermost line."""
    found: list[CrashFrame] = []
    for frame in reversed(died.frames):
        if frame.user:
            break
        found.append(frame)
    return found[::-1]


def deliberate(died: Crash) -> bool:
    """The user's own code raised it, or an assertion of theirs did."""
    last = died.frames[-1] if died.frames else _NOTHING
    return last.user and last.expression is not None and last.expression.kind == "raise"


def refused_by_torch(died: Crash) -> bool:
    """The exception came out of torch: out of its Python code, or of an operator that the user's
    line called.
    """
    if deliberate(died) or not died.frames:
        return False
    last = died.frames[-1]
    return last.user or last.home.split(".")[0] in _OF_TORCH


def frame_of(died: Crash, function: str, home: str = "torch") -> CrashFrame | None:
    """The innermost library frame of a function."""
    for frame in reversed(library_frames(died)):
        if frame.site.function == function and frame.home.startswith(home):
            return frame
    return None


def refusal(run: Run) -> Refusal | None:
    """None where something other than torch ended the run."""
    died = crash(run)
    if not refused_by_torch(died):
        return None
    frame = inner_frame(died)
    expression = frame.expression or Expression("other", frame.site.code)
    called = expression.called if expression.kind == "call" else None
    if called is not None and called.kind in ("tensor", "number", "text"):
        return None  # it is Python that refuses: a value is no function
    below = library_frames(died)
    layers = [f for f in below if _is_layer(f)]
    if layers:
        module = layers[-1].values["self"]
        first = next(f for f in layers if f.values["self"] == module)
        handed = _handed_on(below, module, first, expression)
        given = tuple(_given(first, expression))
        if handed:
            given = tuple(Given("what it is handed", g.bound) for g in given[:1]) + given[1:]
        return Refusal(_function(below), module, given, frame, expression, handed)
    of_torch = [f for f in below if f.home.startswith(("torch.nn.functional", "torch.functional"))]
    if of_torch:
        given = tuple(_given(of_torch[0], expression))
        return Refusal(of_torch[0].site.function, None, given, frame, expression)
    operands = tuple(
        Given(o.keyword or o.text, o.bound) for o in expression.operands if o.bound is not None
    )
    return Refusal(expression.name, None, operands, frame, expression)


def _handed_on(
    below: list[CrashFrame], module: Bound, first: CrashFrame, expression: Expression
) -> bool:
    """nn.Sequential called the layer, with what came out of another one."""
    chain = [f for f in below if f.home == "torch.nn.modules.container"]
    holders = [b for f in chain if (b := f.values.get("self")) and b.cls == "Sequential"]
    if not holders:
        return False
    if module.path:
        inner = [module, *reversed(holders)]
        return any(not _is_first(a, b) for a, b in pairwise(inner))
    given = next((b for name, b in first.values.items() if name != "self"), None)
    written = [o.bound for o in expression.operands if o.bound is not None]
    return given is not None and bool(written) and all(_key(b) != _key(given) for b in written)


def _is_first(module: Bound, holder: Bound) -> bool:
    names = [str(name) for name in holder.settings.get("children") or ()]
    return module.path.rpartition(".")[2] == (names[0] if names else "")


def layer_in_front(run: Run, bound: Bound) -> str:
    """Class and name of the last module of the forward pass that came to an end, where it gave just
    this shape.
    """
    for row in reversed(run.ending.modules):
        outputs = row.get("outputs") or ()
        if outputs and list(outputs[0][1]) == list(bound.shape) and not row.get("failed"):
            return f"{row.get('class')} {row.get('path') or ''}".strip()
    return ""


def _function(below: list[CrashFrame]) -> str:
    named = [f.site.function for f in below if f.home == "torch.nn.functional"]
    return named[0] if named else "forward"


def _is_layer(frame: CrashFrame) -> bool:
    module = frame.values.get("self")
    return (
        module is not None
        and module.kind == "module"
        and frame.home.startswith("torch.nn.modules.")
        and frame.home != "torch.nn.modules.module"
        and frame.site.function != "__init__"
        and module.cls not in _CONTAINERS
    )


def _given(frame: CrashFrame, expression: Expression) -> Iterator[Given]:
    """The values of a library frame, under the names that the user gave them where the user made
    the call.
    """
    written: dict[tuple[object, ...], str] = {}
    for operand in expression.operands:
        if operand.bound is not None:
            written.setdefault(_key(operand.bound), operand.text)
    inline = [o.text for o in expression.operands if o.bound is None]
    for name, bound in frame.values.items():
        if name == "self":
            continue
        known = written.get(_key(bound))
        if known is None and len(inline) == 1 and bound.kind == "tensor":
            known = inline.pop()  # a value that only this line has
        yield Given(known or name, bound)


def _key(bound: Bound) -> tuple[object, ...]:
    return (bound.kind, bound.cls, bound.shape, bound.dtype, bound.device, bound.node, bound.length)


# -- lines


def assigned(frame: CrashFrame, name: str, before: int | None = None) -> Assignment | None:
    """The last line above the failing one that gives a name its value; inside of a loop, one below
    it may have been the last to run.
    """
    line = frame.site.line if before is None else before
    known = [a for a in frame.assignments if a.name == name and a.how != "append"]
    above = [a for a in known if a.site.line < line and a.how != "import"]
    if above:
        return above[-1]
    around = [a for a in known if frame.loop and a.loop == frame.loop and a.site.line >= line]
    return around[-1] if around else None


def origins(frame: CrashFrame, name: str, most: int = 8) -> list[Assignment]:
    """The lines that a value comes from, nearest first, as far as names lead."""
    found: list[Assignment] = []
    waiting = [(name, frame.site.line)]
    while waiting and len(found) < most:
        current, line = waiting.pop(0)
        made = assigned(frame, current, line)
        if made is None or made in found:
            continue
        found.append(made)
        waiting += [(read, made.site.line) for read in made.reads]
    return found


def callers(died: Crash, frame: CrashFrame, name: str) -> Iterator[tuple[CrashFrame, str]]:
    """The frame itself, and where a value is an argument of its function, the frames that gave it,
    with the name that it has there.
    """
    users = [f for f in died.frames if f.user]
    place = users.index(frame) if frame in users else -1
    bound = frame.values.get(name)
    yield frame, name
    while place > 0 and bound is not None:
        argument = any(a.name == name and a.how == "argument" for a in frame.assignments)
        if not argument or assigned(frame, name, None) is None:
            return
        place -= 1
        frame = users[place]
        operands = frame.expression.operands if frame.expression is not None else ()
        same = [o for o in operands if o.bound is not None and _key(o.bound) == _key(bound)]
        if not same:
            return
        name, bound = same[0].text, same[0].bound
        yield frame, name


def makers(run: Run, text: str) -> list[Assignment]:
    """Lines that a value at the failing line comes from, through the functions it was given to.
    `text` is a name, or an expression whose names are followed.
    """
    return makers_of(crash(run), text)


def makers_of(died: Crash, text: str) -> list[Assignment]:
    """The same for a crash whose frames end elsewhere."""
    found: list[Assignment] = []
    waiting = [(inner_frame(died), name) for name in names_of(text)]
    seen: list[tuple[Site, str]] = []
    while waiting:
        first, name = waiting.pop(0)
        if (first.site, name) in seen:
            continue
        seen.append((first.site, name))
        for frame, known_as in callers(died, first, name):
            lines = origins(frame, known_as)
            found += [a for a in lines if a.how != "argument"]
            # an argument that it was made of is followed to the frames that gave it
            given = [a.name for a in lines if a.how == "argument" and a.name != known_as]
            waiting += [(frame, argument) for argument in given]
    return list(dict.fromkeys(found))


def attribute_lines(frame: CrashFrame, text: str) -> list[Site]:
    """Where the constructor sets an attribute of self that an expression begins with."""
    owner, _, rest = text.partition(".")
    holder = frame.values.get(owner)
    attribute = rest.partition("[")[0].partition(".")[0]
    line = holder.lines.get(attribute) if holder is not None else None
    return [line] if line is not None else []


def names_of(text: str) -> list[str]:
    """The names of values in an expression, not those of functions that it calls."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return []
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return list(
        dict.fromkeys(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and id(node) not in called
        )
    )


def since(run: Run) -> str:
    """When it failed, and whether the same line went well before."""
    died = crash(run)
    if not run.num_steps:
        return "at the first step"
    return f"after {run.num_steps} steps that went well" + _odd_batch(run, died)


def _odd_batch(run: Run, died: Crash) -> str:
    """The batch in hand where its first axis differs from all batches before."""
    sizes = [
        next(iter(t["shape"])) for b in run.batches[:-1] for t in b.tensors[:1] if t.get("shape")
    ]
    now = next(iter(tensors_of(died.batch)), None) if died.batch is not None else None
    if now is None or not now.shape or not sizes or now.shape[0] in sizes:
        return ""
    return f"; this batch has {now.shape[0]} rows, those before it had {sizes[-1]}"


def tensors_of(bound: Bound) -> Iterator[Bound]:
    if bound.kind == "tensor":
        yield bound
    for item in bound.items:
        yield from tensors_of(item)


@dataclass(frozen=True)
class Backward:
    """A backward pass that was refused: what it started from."""

    name: str
    bound: Bound
    gradient: bool  # one was given
    frame: CrashFrame


def backward(run: Run) -> Backward | None:
    died = crash(run)
    if deliberate(died):
        return None
    frame = inner_frame(died)
    expression = frame.expression
    below = library_frames(died)
    engine = [f for f in below if f.home.startswith("torch.autograd")]
    started = [f for f in below if f.site.function == "backward" and f.home == "torch._tensor"]
    if started and "self" in started[0].values:
        bound = started[0].values["self"]
        given = started[0].values.get("gradient")
        gradient = given is not None and given.kind != "none"
        return Backward(_receiver(expression, bound), bound, gradient, frame)
    if engine and expression is not None and expression.operands:
        first = expression.operands[0]
        if first.bound is not None and first.bound.kind == "tensor":
            return Backward(first.text, first.bound, False, frame)
    if expression is None or expression.name != "backward" or below:
        return None
    asked = expression.operands[0] if expression.operands else None
    if asked is None or asked.bound is None or asked.bound.kind != "number":
        return None
    return Backward(asked.text, asked.bound, False, frame)


def _receiver(expression: Expression | None, bound: Bound) -> str:
    """The value as the user wrote it."""
    for operand in expression.operands if expression is not None else ():
        if operand.bound is None or _key(operand.bound) == _key(bound):
            return operand.text
    return "the loss"
