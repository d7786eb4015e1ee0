"""A subject: what is to be trained, as factories that give fresh pieces on every call."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.schema.errors import SawbonesError

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


class SubjectNotFound(SawbonesError):
    """A subject that can't be imported, or lacks a piece."""


@dataclass(frozen=True)
class Subject:
    """model() and data() are called for every fresh start; data() gives an iterable of batches, a
    DataLoader for one.

    loss(outputs, batch) gives a scalar; optimizer(parameters) the optimizer. Without `forward`, a
    dict batch goes in by the names that the model's forward takes, a tuple or list without its last
    element (the target), anything else whole. `validation` gives batches to evaluate on;
    `evaluate(model)` replaces the evaluation; `scheduler(optimizer)` is stepped after every step.
    """

    model: Callable[[], nn.Module]
    data: Callable[[], Iterable[Any]]
    loss: Callable[[Any, Any], Any]
    optimizer: Callable[[Iterable[Any]], Optimizer]
    forward: Callable[[Any, Any], Any] | None = None
    validation: Callable[[], Iterable[Any]] | None = None
    evaluate: Callable[[Any], Any] | None = None
    scheduler: Callable[[Any], Any] | None = None
    name: str = ""

    def outputs(self, model: Any, batch: Any) -> Any:
        if self.forward is not None:
            return self.forward(model, batch)
        if isinstance(batch, Mapping):
            taken = inspect.signature(model.forward).parameters
            if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
                return model(**batch)
            return model(**{key: value for key, value in batch.items() if key in taken})
        if isinstance(batch, (list, tuple)):
            return model(*batch[:-1]) if len(batch) > 1 else model(batch[0])
        return model(batch)

    def loss_of(self, model: Any, batch: Any) -> Any:
        return self.loss(self.outputs(model, batch), batch)


_NEEDED = ("model", "data", "loss", "optimizer")


def as_subject(thing: Any, name: str = "") -> Subject:
    """A Subject as it is; a dict, module, class or object with the same names; or a function that
    returns one of these.
    """
    if isinstance(thing, Subject):
        return thing if thing.name else replace(thing, name=name)
    if inspect.isfunction(thing):
        return as_subject(thing(), name or thing.__name__)
    if inspect.isclass(thing):
        thing = thing()
    if isinstance(thing, Mapping):
        found = {f.name: thing[f.name] for f in fields(Subject) if f.name in thing}
    else:
        found = {
            f.name: getattr(thing, f.name)
            for f in fields(Subject)
            if getattr(thing, f.name, None) is not None
        }
    missing = [piece for piece in _NEEDED if not callable(found.get(piece))]
    if missing:
        raise SubjectNotFound(
            f"{name or type(thing).__name__} has no {' and no '.join(missing)}. It needs "
            "model(), data(), loss(outputs, batch) "
            "and optimizer(parameters): sawbones.Subject(model=..., data=..., loss=..., "
            "optimizer=...)"
        )
    known = {key: value for key, value in found.items() if key == "name" or callable(value)}
    return Subject(**{**known, "name": name or str(known.get("name") or "")})


def load_subject(spec: str) -> Subject:
    """`my.module:subject` or `path/to/file.py:subject`; without a name after the colon,
    `subject`.
    """
    return as_subject(load_named(spec, "check"), spec)


def load_named(spec: str, command: str) -> Any:
    """What `my.module:name` or `path/to/file.py:name` stands for, for this command of ours."""
    place, _, attribute = spec.partition(":")
    attribute = attribute or "subject"
    names = [attribute] if place.endswith(".py") else [attribute, *place.split(".")]
    if not all(name.isidentifier() for name in names):
        raise SubjectNotFound(
            f"{spec!r} names no subject. As in: sawbones {command} my.module:subject, or "
            "path/to/file.py:subject"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        path = Path(place)
        module = _from_file(path, command) if place.endswith(".py") else _from_name(place, command)
    except SawbonesError:
        raise
    except (Exception, SystemExit) as error:  # the user's own code
        said = str(error).split("\n")[0][:200]
        raise SubjectNotFound(
            f"{place} cannot be imported: {type(error).__name__}: {said}"
        ) from error
    if not hasattr(module, attribute):
        near = sorted(
            n for n, v in vars(module).items() if not n.startswith("_") and not inspect.ismodule(v)
        )[:8]
        raise SubjectNotFound(
            f"{place} has no {attribute!r}. It has: {', '.join(near) or 'nothing'}"
        )
    return getattr(module, attribute)


def _from_name(place: str, command: str) -> Any:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not (place + ".").startswith(error.name + "."):
            raise  # the module is there; something that it imports is not
        raise SubjectNotFound(
            f"no module {place!r} from {os.getcwd()}. As in an import: sawbones {command} "
            "my.module:subject"
        ) from error


def _from_file(path: Path, command: str) -> Any:
    if not path.is_file():
        raise SubjectNotFound(f"no file {path}. As in: sawbones {command} {path.name}:subject")
    name = path.stem
    sys.path.insert(0, str(path.absolute().parent))
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise SubjectNotFound(f"{path} is no Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
