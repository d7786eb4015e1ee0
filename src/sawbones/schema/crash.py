"""What was bound when the script died of an exception: read off the traceback, once, afterwards.

Nothing is evaluated again for it. A value is described by what its class is known to hold (shapes,
dtypes, sizes), never by asking the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Assignment:
    """A line of the user's source that gives a name its value."""

    name: str
    site: Site
    text: str = ""  # the right side; of a loop, what it goes over; "" for an argument
    how: str = "assign"  # assign, augment, loop, argument, import, with, append
    reads: tuple[str, ...] = ()  # names on the right side
    calls: tuple[str, ...] = ()  # last names of what is called on the right side, outermost first
    loop: int = 0  # first line of the innermost loop around it, 0 for none
    branch: str = ""  # the condition of the innermost if around it, as written
    branch_line: int = 0
    # arguments by name on the right side
    keywords: Mapping[str, Site] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Construction:
    """The call that made a module, as written, and the lines that its arguments come from."""

    site: Site
    text: str = ""
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """One value. kind: tensor, array, module, optimizer, loader, number, text, none, sequence,
    mapping, table, function, class, package, object.
    """

    kind: str
    cls: str = ""  # the name of its class; of a function, class or package its own name
    home: str = ""  # the module that defines that class or function
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    requires_grad: bool = False
    node: str = ""  # what made it in the graph, "" for a leaf
    length: int = -1  # of a sequence, mapping or text
    items: tuple[Bound, ...] = ()  # the first few
    # of a mapping, of a table its columns, the texts of a sequence of names, a text's beginning
    keys: tuple[str, ...] = ()
    value: float | None = None  # of a number
    # of a module: declared sizes; of a small tensor on the CPU: low, high, nonfinite
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""  # of a module: its name in the model
    built: Construction | None = None
    lines: Mapping[str, Site] = field(default_factory=dict)  # of a user's class: its methods


@dataclass(frozen=True, slots=True)
class Operand:
    text: str  # as written
    bound: Bound | None = None  # None: a value that no name holds
    keyword: str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """The part of a line that was being evaluated. kind: call, binary, augment, subscript,
    attribute, unpack, iterate, raise, other.
    """

    kind: str
    text: str
    name: str = ""  # what is called, the operator, or the attribute
    called: Bound | None = None
    operands: tuple[Operand, ...] = ()  # of a method: the object first
    wanted: int = -1  # of unpack: how many names stand on the left


@dataclass(frozen=True, slots=True)
class CrashFrame:
    site: Site
    user: bool
    home: str = ""  # the module that the code belongs to
    values: Mapping[str, Bound] = field(default_factory=dict)
    expression: Expression | None = None  # of the user's frames
    assignments: tuple[Assignment, ...] = ()  # of the names that the line depends on, in order
    loop: int = 0  # first line of the innermost loop around the line, 0 for none
    dropped: tuple[Site, ...] = ()  # lines that make a copy (x.to(...), x.float()) and drop it


@dataclass(frozen=True, slots=True)
class Link:
    """An exception behind the one that ended the run. relation: cause or context."""

    relation: str
    exception: str
    message: str
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A line of the user's source that changes a value in place."""

    site: Site
    text: str
    target: str  # the name of what is changed
    function: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """A line that a value comes from, with the part of it that gives the value. how: assign,
    append, return, given (as an argument, where the call stands), default, loop, frozen,
    changed (after it was used).
    """

    site: Site
    text: str
    how: str = "assign"
    parent: int = -1  # place in the trace of the line that it feeds, -1 for the failing one
    calls: tuple[str, ...] = ()  # last names of what is called, outermost first
    numbers: tuple[float, ...] = ()  # that are written there
    # what the part is made of: literal (no name in it), slice, operator, call, user (a call of the
    # user's own code)
    parts: tuple[str, ...] = ()
    # of the value itself where something still holds it
    dtype: str = ""
    shape: tuple[int, ...] = ()
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The lines that one value comes from, nearest first. subject: the expression as the failing
    line has it; "sample" for what the data set gives; "built " and an expression for an argument of
    the layer that refused; "frozen" for what took parameters out of training.
    """

    subject: str
    lines: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Crash:
    exception: str
    classes: tuple[str, ...]  # names of its classes, itself first, without object
    message: str
    frames: tuple[CrashFrame, ...] = ()  # outermost first, the user's and the library's
    chain: tuple[Link, ...] = ()
    batch: Bound | None = None  # what the loader gave last
    step: int = 0
    phase: str = ""
    changes: tuple[Change, ...] = ()  # in-place changes, where the backward pass was refused
    carriers: tuple[str, ...] = ()  # names in the last user frame that hold a graph in use
    remote: tuple[Site, ...] = ()  # the user's frames in a worker process, outermost first
    frozen: tuple[Site, ...] = ()  # lines that freeze parameters, where backward was refused
    recent: tuple[Mapping[str, Any], ...] = ()  # last operators of a deep step, oldest first
    traces: tuple[Trace, ...] = ()
