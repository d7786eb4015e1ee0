"""Where a fault can be put into a healthy script: calls, statements and classes by what they do.

Names of torch's own methods and classes are all that is looked for; what the user calls things does
not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, after, remove
from sawbones.fixing.source import Source, called_name

Edits = tuple[Edit, ...]
_TRUNKS = ("Sequential", "RNN", "LSTM", "GRU", "TransformerEncoder", "TransformerDecoder")
OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop", "NAdam", "RAdam", "Adagrad")


def calls(source: Source, *names: str) -> list[ast.Call]:
    """All calls of these functions, methods or classes, in the order of the file."""
    found = [
        n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and called_name(n) in names
    ]
    return sorted(found, key=lambda call: source.span(call))


def statements(source: Source, *names: str) -> list[ast.Expr]:
    """Calls that stand alone: `optimizer.zero_grad()`."""
    whole = (source.parents[call] for call in calls(source, *names))
    return [statement for statement in whole if isinstance(statement, ast.Expr)]


def call_of(statement: ast.Expr) -> ast.Call:
    assert isinstance(statement.value, ast.Call)
    return statement.value


def receiver(source: Source, call: ast.Call) -> str:
    """What the method is called on, as it is written."""
    return source.text_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def optimizers(source: Source) -> list[ast.Call]:
    return [c for c in calls(source, *OPTIMIZERS) if isinstance(source.parents[c], ast.Assign)]


def optimizer_names(source: Source) -> set[str]:
    return {name for call in optimizers(source) if (name := assigned_name(source, call))}


def assigned_name(source: Source, value: ast.expr) -> str:
    """`model` of `model = Net(...)`; empty where it is no plain assignment."""
    parent = source.parents[value]
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return source.text_of(parent.targets[0])
    return ""


def optimizer_steps(source: Source) -> list[ast.Expr]:
    known = optimizer_names(source)
    return [s for s in statements(source, "step") if receiver(source, call_of(s)) in known]


def scheduler_steps(source: Source) -> list[ast.Expr]:
    made = [c for c in ast.walk(source.tree) if isinstance(c, ast.Call) and "LR" in called_name(c)]
    known = {assigned_name(source, call) for call in made}
    return [s for s in statements(source, "step") if receiver(source, call_of(s)) in known]


def modules(source: Source) -> list[ast.ClassDef]:
    """Classes of the file that are torch modules."""
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        and any(source.text_of(base).endswith("Module") for base in node.bases)
    ]


def acts_by_mode(source: Source) -> bool:
    """It builds a layer that does another thing in training than in evaluation; without one, the mode
    changes nothing.
    """
    return bool(calls(source, "Dropout", "Dropout2d", "BatchNorm1d", "BatchNorm2d"))


def normalises(source: Source) -> bool:
    """It builds a layer that takes the size of what goes in away again."""
    made = (called_name(n) for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    return any("Norm" in name or name.startswith("Transformer") for name in made)


def clips(source: Source) -> bool:
    return bool(calls(source, "clip_grad_norm_", "clip_grad_value_"))


def method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    found = (n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(found, None)


def forwards(source: Source) -> Iterator[ast.FunctionDef]:
    for owner in modules(source):
        found = method(owner, "forward")
        if found is not None:
            yield found


def models(source: Source) -> list[ast.Assign]:
    """Statements such as `model = Net(...)`."""
    own = {owner.name for owner in modules(source)}
    made = (source.parents[call] for call in calls(source, *own))
    return [statement for statement in made if isinstance(statement, ast.Assign)]


def submodules(owner: ast.ClassDef) -> list[str]:
    """Attributes that `__init__` sets to something it builds: self.body, self.head."""
    init = method(owner, "__init__")
    found = []
    for node in ast.walk(init) if init is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            built = called_name(node.value)[:1].isupper() and called_name(node.value) != "Parameter"
            if isinstance(target, ast.Attribute) and built:
                found.append(target.attr)
    return found


def trunks(owner: ast.ClassDef) -> list[str]:
    """Attributes that hold more than one layer in a row or a recurrent one: what a last linear layer
    cannot make up for. Tables, gains and single projections are left out: behind them the rest
    learns nearly as well.
    """
    init = method(owner, "__init__")
    found = []
    for node in ast.walk(init) if init is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and called_name(node.value) in _TRUNKS:
                found.append(target.attr)
    return found


def is_in(source: Source, node: ast.AST, kind: type[ast.AST]) -> bool:
    return any(isinstance(outer, kind) for outer in source.around(node))


def moved_behind(source: Source, statement: ast.stmt, there: ast.stmt) -> Edits:
    """The statement, taken out and put behind another one."""
    return remove(source, statement), after(source, there, source.text_of(statement))


def after_value(source: Source, value: ast.expr, text: str) -> Edit:
    """`text` right behind an expression."""
    stop = source.span(value)[1]
    return Edit(source.file, stop, stop, text)


def data_sets(source: Source) -> list[ast.Call]:
    """TensorDataset(inputs, labels)."""
    return [call for call in calls(source, "TensorDataset") if len(call.args) == 2]


def loss_expressions(source: Source) -> list[tuple[ast.Expr, ast.expr]]:
    """`loss.backward()` statements with the expression that they start from."""
    return [
        (statement, call.func.value)
        for statement in statements(source, "backward")
        if isinstance((call := call_of(statement)).func, ast.Attribute)
    ]


def trained_rows(source: Source) -> list[tuple[ast.stmt, str, str]]:
    """The statement that makes the first data set from `table[rows]`, with the names of both."""
    found = []
    for call in data_sets(source)[:1]:
        inputs = call.args[0]
        if isinstance(inputs, ast.Subscript) and isinstance(inputs.slice, ast.Name):
            table = inputs.value
            if isinstance(table, ast.Name):
                found.append((source.statement(call), table.id, inputs.slice.id))
    return found
