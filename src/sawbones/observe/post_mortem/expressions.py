"""The part of a line that was being evaluated when an exception came out of it.

Python 3.11 knows the columns of every instruction. Names, attributes that objects keep in their
own dictionary, and constants are looked up; nothing is called.
"""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import torch

from sawbones.observe.post_mortem.sources import Source, dotted
from sawbones.observe.post_mortem.values import MISSING, Values
from sawbones.schema.crash import Bound, Expression, Operand

MOST_OPERANDS = 12
_UNPACKING = ("UNPACK_SEQUENCE", "UNPACK_EX")
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}

_METHODS = (types.FunctionType, types.MethodDescriptorType, types.BuiltinFunctionType)

Describe = Callable[[object], Bound]


def expression_of(tb: types.TracebackType, source: Source, describe: Describe) -> Expression | None:
    frame, code = tb.tb_frame, tb.tb_frame.f_code
    place = next(islice(code.co_positions(), tb.tb_lasti // 2, None), None)
    if place is None or None in place:
        return None
    line, end_line, begin, end = place
    opcode = _opcode(code, tb.tb_lasti)
    if opcode == "RAISE_VARARGS":  # a raise, or an assertion that failed
        return Expression("raise", source.site(line or 0).code)
    node = source.node_at(line or 0, end_line or 0, begin or 0, end or 0)
    if node is None:
        return None
    finder = _Finder(source, frame, describe)
    if opcode in _UNPACKING:
        return finder.unpacking(node)
    if opcode in ("FOR_ITER", "GET_ITER"):
        node = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node
        return Expression("iterate", source.segment(node), operands=(finder.operand(node),))
    return finder.expression(node)


def _opcode(code: types.CodeType, offset: int) -> str:
    return next((i.opname for i in dis.get_instructions(code) if i.offset == offset), "")


class _Finder:
    def __init__(self, source: Source, frame: types.FrameType, describe: Describe) -> None:
        self._source, self._describe = source, describe
        self.value = Values(frame.f_locals, frame.f_globals)

    def expression(self, node: ast.AST) -> Expression:
        text = self._source.segment(node)
        if isinstance(node, ast.Call):
            return self._call(node, text)
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            sides = (
                (node.left, node.right)
                if isinstance(node, ast.BinOp)
                else (node.target, node.value)
            )
            name = _OPERATORS.get(type(node.op), type(node.op).__name__)
            kind = "binary" if isinstance(node, ast.BinOp) else "augment"
            return Expression(kind, text, name, operands=tuple(map(self.operand, sides)))
        if isinstance(node, ast.Compare):
            sides = (node.left, node.comparators[0])
            name = type(node.ops[0]).__name__.lower()
            return Expression("binary", text, name, operands=tuple(map(self.operand, sides)))
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found = tuple(map(self.operand, (node.value, *parts)))
            return Expression("subscript", text, "getitem", operands=found)
        if isinstance(node, ast.Attribute):
            return Expression("attribute", text, node.attr, operands=(self.operand(node.value),))
        return Expression("other", text)

    def _call(self, node: ast.Call, text: str) -> Expression:
        called = self.value(node.func)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        operands = []
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            # of self.layer(x) the layer is what is called, and not a method of self
            held = called is not MISSING and not issubclass(type(called), _METHODS)
            if not issubclass(type(owner), types.ModuleType) and not held:
                operands.append(self.operand(node.func.value))
        operands += [self.operand(argument) for argument in node.args]
        operands += [self.operand(w.value, w.arg or "") for w in node.keywords]
        bound = self._describe(called) if called is not MISSING else None
        return Expression("call", text, name, bound, tuple(operands[:MOST_OPERANDS]))

    def unpacking(self, node: ast.AST) -> Expression:
        """The names on the left stand at the place of the instruction; what they were to be taken
        from is the other side of the statement.
        """
        wanted = len(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else -1
        given: ast.AST | None = None
        text = self._source.segment(node)
        for statement in ast.walk(self._source.tree):
            if isinstance(statement, ast.Assign) and node in statement.targets:
                given, text = statement.value, self._source.segment(statement)
            elif isinstance(statement, (ast.For, ast.comprehension)) and any(
                inner is node for inner in ast.walk(statement.target)
            ):
                given, text = statement.iter, self._source.segment(statement.target)
                text = f"for {text} in {self._source.segment(given)}"
        operands = (self.operand(given),) if given is not None else ()
        return Expression("unpack", text, operands=operands, wanted=wanted)

    def operand(self, node: ast.AST, keyword: str = "") -> Operand:
        value = self.value(node)
        bound = self._describe(value) if value is not MISSING else self._part(node)
        return Operand(self._source.segment(node), bound, keyword)

    def _part(self, node: ast.AST) -> Bound | None:
        """The shape of x[:, None], from that of x: nothing is indexed for it."""
        owner = self.value(node.value) if isinstance(node, ast.Subscript) else MISSING
        if not isinstance(node, ast.Subscript) or not issubclass(type(owner), torch.Tensor):
            return None
        whole = self._describe(owner)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        left, shape = list(whole.shape), []
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                shape.append(1)
            elif isinstance(part, ast.Slice) and part.lower is part.upper is part.step and left:
                shape.append(left.pop(0))
            elif isinstance(part, ast.Constant) and type(part.value) is int and left:
                left.pop(0)
            else:
                return None
        return replace(whole, shape=(*shape, *left))
