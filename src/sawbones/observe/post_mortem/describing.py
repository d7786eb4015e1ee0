"""Values -> Bound, without running any code of the user's: no property, no __getattr__, no __len__
of a class that is not known here.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.masking import mask, masker
from sawbones.observe.origins import built_at
from sawbones.observe.post_mortem.layers import Unkept
from sawbones.observe.post_mortem.pickling import unpicklable
from sawbones.observe.post_mortem.ranges import value_range
from sawbones.observe.post_mortem.tables import TABLES, table
from sawbones.observe.post_mortem.values import members_of
from sawbones.schema.crash import Bound, Construction
from sawbones.schema.site import Site

MOST_ITEMS = 8
MOST_SAMPLES = 256  # of a list: the one that differs may come late
MOST_KEYS = 12
MOST_TEXT = 80
MOST_MASKED = 4096  # characters of a text that are looked through for secrets
MOST_DEPTH = 3
MOST_SUBMODULES = 400
# Sizes that a layer declares, by the attribute that torch keeps them under.
SIZES = (
    "in_features",
    "out_features",
    "in1_features",
    "in2_features",
    "in_channels",
    "out_channels",
    "kernel_size",
    "stride",
    "padding",
    "groups",
    "num_embeddings",
    "embedding_dim",
    "embed_dim",
    "d_model",
    "num_heads",
    "kdim",
    "vdim",
    "normalized_shape",
    "num_features",
    "num_groups",
    "num_channels",
    "input_size",
    "hidden_size",
    "num_layers",
    "bidirectional",
    "batch_first",
    "reduction",
    "start_dim",
    "end_dim",
    "dim",
    "training",
)
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)

_HOLDING = ("sequence", "mapping", "tensor", "array", "table")  # of which a sample is taken
_LIBRARIES = ("torch", "numpy", "pandas", "transformers", "lightning", "pytorch_lightning")

Built = Callable[[nn.Module, Site], Construction]
Lines = Callable[[Mapping[str, types.FunctionType], list[str]], dict[str, Site]]
LayersUnkept = Callable[[nn.Module], Unkept]


def _up_to_odd_one(items: list[Any]) -> list[Any]:
    """The first few; where one that has another size than all before it comes later, up to it."""
    sizes = [_size_of(item) for item in items]
    others = (number for number, size in enumerate(sizes) if size != sizes[0])
    known = bool(items) and None not in sizes
    return items[: max(MOST_ITEMS, next(others, -1) + 1 if known else 0)]


def _size_of(item: object) -> tuple[int, ...] | None:
    array = getattr(sys.modules.get("numpy"), "ndarray", torch.Tensor)
    if issubclass(type(item), (torch.Tensor, array)):
        return tuple(item.shape)  # type: ignore[attr-defined]
    for form in (list, tuple):
        if issubclass(type(item), form):
            return (form.__len__(item),)  # type: ignore[arg-type]
    return None


def _beginning(text: str) -> str:
    """Masked before it is cut: half of a token is no longer known as one."""
    return mask(text[:MOST_MASKED])[:MOST_TEXT]


def learn_secret(name: object, value: object) -> None:
    """A text is kept with its beginning: one that is a secret by its name is masked wherever it
    recurs.
    """
    if type(name) is str and type(value) is str:
        masker().learn_named(name, value, f"variable {name}")


class Describer:
    """`names`: the path of every module of the models that ran. `construction`: the call that made
    a module, as written. `lines`: where methods and attributes of its class stand. `unkept`: layers
    that its class makes and the module does not hold.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        construction: Built,
        lines: Lines,
        unkept: LayersUnkept,
    ) -> None:
        self._names, self._construction, self._lines = names, construction, lines
        self._unkept = unkept

    def __call__(self, value: object, depth: int = MOST_DEPTH) -> Bound:
        try:
            with torch._C.DisableTorchFunction():
                return self._described(value, depth)
        except Exception:  # a half-made object, a storage that is gone
            return Bound("object", type(value).__name__, str(type(value).__module__))

    def _described(self, value: object, depth: int) -> Bound:
        cls = type(value)
        name, home = cls.__name__, str(cls.__module__)
        if value is None:
            return Bound("none", "None")
        if issubclass(cls, torch.Tensor):
            return _tensor(value, name, home)
        if issubclass(cls, (bool, int, float)):
            return Bound("number", name, home, value=_number(value))
        if issubclass(cls, (str, bytes)):
            begin = (_beginning(value),) if type(value) is str else ()
            return Bound("text", name, home, length=cls.__len__(value), keys=begin)  # type: ignore[arg-type]
        if cls in (torch.device, torch.dtype):
            return Bound("object", name, home, dtype=str(value).removeprefix("torch."))
        if issubclass(cls, nn.Module):
            return self._module(value, name, home)
        if issubclass(cls, (tuple, list)):
            return self._sequence(value, name, home, depth)
        if issubclass(cls, dict):
            return self._mapping(value, name, home, depth)
        if issubclass(cls, (DataLoader, _BaseDataLoaderIter)):
            return self._loader(value, name, home)
        if cls is types.FunctionType:
            code = value.__code__  # type: ignore[attr-defined]
            lines = self._lines({code.co_name: value}, [])  # type: ignore[dict-item]
            return replace(_other(value, cls, name, home), lines=lines)
        other = _other(value, cls, name, home)
        return self._holder(value, other) if other.kind == "object" and depth > 0 else other

    def _holder(self, value: Any, known: Bound) -> Bound:
        """An object of a class of the user's: what it holds in lists, tables and dictionaries, and
        where its constructor puts them.
        """
        if known.home.startswith("torch.optim.lr_scheduler"):
            return replace(known, settings=_numbers(vars(value)))
        methods = _methods(type(value))
        held = members_of(value)
        if not methods or known.home.split(".")[0] in _LIBRARIES:
            return known
        rows = [(key, self(item, 1)) for key, item in list(held.items())[:MOST_KEYS]]
        kept = [(key, bound) for key, bound in rows if bound.kind in _HOLDING]
        lines = self._lines(methods, [key for key, _ in kept])
        keys, items = tuple(k for k, _ in kept), tuple(b for _, b in kept)
        return replace(known, keys=keys, items=items, lines=lines)

    def _loader(self, value: Any, name: str, home: str) -> Bound:
        held = object.__getattribute__(value, "__dict__")
        sizes = {key: held[key] for key in ("batch_size", "num_workers") if key in held}
        dataset = held.get("dataset", held.get("_dataset"))
        sizes["dataset"] = type(dataset).__name__
        members = unpicklable(held, dataset)
        sizes["unpicklable"] = [f"{member}: {what}" for member, what, _ in members]
        names = [member.partition(".")[2] for member, _, _ in members]
        lines = self._lines(_methods(type(dataset)), names) if dataset is not None else {}
        for member, _, held_there in members:
            if type(held_there) is types.FunctionType:
                name_there = held_there.__code__.co_name
                own_line = self._lines({name_there: held_there}, [])
                lines |= {f"code of {member}": s for n, s in own_line.items() if n == name_there}
        own = self(dataset, 1)
        lines = {**own.lines, **lines} if own.kind == "object" else lines
        return Bound(
            "loader", name, home, settings=sizes, lines=lines, keys=own.keys, items=own.items
        )

    def _sequence(self, value: Any, name: str, home: str, depth: int) -> Bound:
        form = tuple if issubclass(type(value), tuple) else list
        length = form.__len__(value)
        first = [form.__getitem__(value, i) for i in range(min(length, MOST_SAMPLES))]
        if not all(issubclass(type(item), torch.Tensor) for item in first):
            first = _up_to_odd_one(first)
        texts = [_beginning(t) for t in first if type(t) is str]
        items = tuple(self(item, depth - 1) for item in first) if depth > 0 else ()
        return Bound("sequence", name, home, length=length, items=items, keys=tuple(texts))

    def _mapping(self, value: Any, name: str, home: str, depth: int) -> Bound:
        keys, items = [], []
        for number, (key, item) in enumerate(dict.items(value)):
            if number >= MOST_KEYS:
                break
            keys.append(_beginning(key) if type(key) is str else type(key).__name__)
            learn_secret(key, item)
            if depth > 0 and number < MOST_ITEMS:
                items.append(self(item, depth - 1))
        length = dict.__len__(value)
        return Bound("mapping", name, home, length=length, items=tuple(items), keys=tuple(keys))

    def _module(self, value: Any, name: str, home: str) -> Bound:
        held = object.__getattribute__(value, "__dict__")
        own = {key: _plain(held[key]) for key in SIZES if key in held}
        parameters = list(_parameters(value))
        own["num_parameters"] = len(parameters)
        own["num_trained"] = sum(p.requires_grad for p in parameters)
        if "_modules" not in held:
            own["not_initialised"] = True
        own |= _oddities(value)
        own["children"] = [name[:MOST_TEXT] for name in held.get("_modules") or ()][:MOST_KEYS]
        loose = _loose_modules(held)
        if loose:
            own["modules_in_plain_containers"] = loose
        lines: dict[str, Site] = {}
        if not home.startswith("torch."):
            methods = _methods(type(value))
            own["methods"] = list(methods)
            lines = self._lines(methods, loose)
            if not parameters:
                unkept = self._unkept(value)
                own["methods_not_run"], own["local_layers"] = unkept.not_run, unkept.local
                lines = {**unkept.lines, **lines}
        if "holds_itself" in own:
            lines = {**lines, **self._circle_line(value, own["holds_itself"])}
        dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in parameters})
        devices = sorted({str(p.device) for p in parameters})
        site = built_at(value)
        return Bound(
            "module",
            name,
            home,
            dtype=", ".join(dtypes),
            device=", ".join(devices),
            settings=own,
            path=self._names.get(id(value), ""),
            built=self._construction(value, site) if site is not None else None,
            lines=lines,
        )

    def _circle_line(self, module: Any, path: str) -> dict[str, Site]:
        """Where the attribute is set that closes the circle."""
        *before, last = path.split(".")
        for name in before:
            module = object.__getattribute__(module, "__dict__")["_modules"][name]
        found = self._lines(_methods(type(module)), [last])
        return {"circle": found[last]} if last in found else {}


def _tensor(value: Any, name: str, home: str) -> Bound:
    node = value.grad_fn
    return Bound(
        "tensor",
        name,
        home,
        tuple(int(size) for size in value.shape),
        str(value.dtype).removeprefix("torch."),
        str(value.device),
        bool(value.requires_grad),
        type(node).__name__ if node is not None else "",
        settings={**_version(value), **value_range(value), **_strides(value)},
    )


def _version(value: torch.Tensor) -> dict[str, int]:
    return {"version": int(value._version)} if not value.is_inference() else {}


def _strides(value: torch.Tensor) -> dict[str, list[int]]:
    """Of a tensor whose values do not lie one after another."""
    strided = value.layout is torch.strided
    scattered = strided and not value.is_contiguous()
    return {"strides": list(value.stride())} if scattered else {}


def _other(value: object, cls: type, name: str, home: str) -> Bound:
    if issubclass(cls, type):
        own = {"abstract": "nn.Module"} if issubclass(value, nn.Module) else {}  # type: ignore[arg-type]
        made = str(type.__getattribute__(value, "__module__"))
        return Bound("class", type.__getattribute__(value, "__name__"), made, settings=own)
    if issubclass(cls, _FUNCTIONS):
        return Bound("function", str(value.__name__), str(value.__module__ or ""))  # type: ignore[attr-defined]
    if issubclass(cls, types.ModuleType):
        return Bound("package", str(vars(value).get("__name__", "")), "")
    if issubclass(cls, torch.optim.Optimizer):
        return Bound("optimizer", name, home)
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(cls, numpy.ndarray):
        # by the class of all arrays: a subclass of the user's may compute what it is asked
        of = {key: vars(numpy.ndarray)[key].__get__(value) for key in ("shape", "strides", "dtype")}
        shape, strides = tuple(map(int, of["shape"])), list(map(int, of["strides"]))
        name = "ndarray" if home == "numpy" else name
        return Bound("array", name, home, shape, str(of["dtype"]), settings={"strides": strides})
    if name in TABLES and home.split(".")[0] == "pandas":
        return table(value, name, home)
    if numpy is not None and issubclass(cls, numpy.generic) and home == "numpy":
        return Bound("number", name, home, dtype=name)
    return Bound("object", name, home)


def _numbers(held: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in held.items() if type(item) in (int, float)}


def _number(value: Any) -> float | None:
    plain = type(value) in (bool, int, float)
    return float(value) if plain and abs(value) < 1e300 else None


def _plain(value: object) -> Any:
    if type(value) in (bool, int, float, str) or value is None:
        return value
    if type(value) in (tuple, list, torch.Size):
        return [v if type(v) in (bool, int, float, str) else str(type(v)) for v in value]  # type: ignore[attr-defined]
    return type(value).__name__


def submodules(module: nn.Module) -> Iterator[nn.Module]:
    """Itself and what it holds, without calling any of its methods."""
    seen: set[int] = set()
    waiting: list[nn.Module] = [module]
    while waiting and len(seen) < MOST_SUBMODULES:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        held = object.__getattribute__(current, "__dict__").get("_modules") or {}
        waiting += [m for m in reversed(list(dict.values(held))) if issubclass(type(m), nn.Module)]


def _oddities(module: nn.Module) -> dict[str, Any]:
    """A module that holds itself, and a forward that stands inside of another method."""
    found: dict[str, Any] = {}
    circle = _circle(module, module, "", 0)
    if circle:
        found["holds_itself"] = circle
    for method in _methods(type(module)).values():
        inner = [c for c in method.__code__.co_consts if type(c) is types.CodeType]
        lines = [code.co_firstlineno for code in inner if code.co_name == "forward"]
        if lines and "forward" not in vars(type(module)):
            found["forward_inside"], found["forward_line"] = method.__name__, lines[0]
    return found


def _circle(module: nn.Module, root: nn.Module, path: str, depth: int) -> str:
    """The attributes that lead from a module back to itself."""
    held = object.__getattribute__(module, "__dict__").get("_modules") or {}
    for name, inner in dict.items(held):
        here = f"{path}.{name}" if path else name
        if inner is root:
            return here
        further = inner is not None and depth < MOST_DEPTH
        circle = _circle(inner, root, here, depth + 1) if further else ""
        if circle:
            return circle
    return ""


def _parameters(module: nn.Module) -> Iterator[torch.Tensor]:
    for current in submodules(module):
        held = object.__getattribute__(current, "__dict__").get("_parameters") or {}
        yield from (p for p in dict.values(held) if issubclass(type(p), torch.Tensor))


def _loose_modules(held: Mapping[str, Any]) -> list[str]:
    """Names under which modules or parameters stand in a plain list, tuple or dict."""
    found = []
    for name, value in held.items():
        if name.startswith("_") or type(value) not in (list, tuple, dict):
            continue
        items = list(value.values() if type(value) is dict else value)[:MOST_ITEMS]
        if items and all(issubclass(type(i), (nn.Module, nn.Parameter)) for i in items):
            found.append(name)
    return found


def _methods(cls: type) -> dict[str, types.FunctionType]:
    found = {n: f for n, f in vars(cls).items() if type(f) is types.FunctionType}
    return dict(list(found.items())[:MOST_KEYS])
