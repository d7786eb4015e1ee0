"""Vocabularies in the user's hands: mappings from text to id and back, whether they undo each
other, and which differ.

Looked for by value in the variables of the user's frames and in the objects that these hold: a
mapping from at least six strings to different whole numbers is a vocabulary, one from whole numbers
(or a list) to strings a table for decoding.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from sawbones.observe.sites import is_user_file
from sawbones.observe.variables import variables_of
from sawbones.schema.held import VocabularyPair

MIN_SIZE = 6
MAX_SIZE = 300_000
_MAX_VISITED = 4000
_MAX_FOUND = 24
_DECODING = ("tokenizers", "transformers", "tiktoken", "sentencepiece")


class Vocabularies:
    def __init__(self) -> None:
        self.encoders: dict[int, tuple[str, dict[str, int]]] = {}
        self.decoders: dict[int, tuple[str, dict[int, str]]] = {}
        self.tokenizers: dict[int, Any] = {}  # of libraries that decode ids themselves
        self._root = ""  # the variable through which the walk came
        self._roots: dict[int, str] = {}
        self._lists: set[int] = set()

    def look(self, frame: types.FrameType | None) -> None:
        """Walks the user's frames from here outwards."""
        visited: set[int] = set()
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                for scope in (variables_of(frame), frame.f_globals):
                    for name, value in list(scope.items()):
                        if not name.startswith("__"):
                            self._root = name
                            self._visit(name, value, visited, 0)
            frame = frame.f_back

    def look_early(self, frame: types.FrameType | None) -> None:
        """Where a loader is built, or an evaluation begins: a vocabulary of one split may be gone by
        the first step, and one that serves comes after the last. Tables may still be unfinished.
        """
        decoders, lists = dict(self.decoders), set(self._lists)
        self.look(frame)
        self.decoders, self._lists = decoders, lists

    def _visit(self, name: str, value: Any, visited: set[int], depth: int) -> None:
        if (
            id(value) in visited
            or len(visited) > _MAX_VISITED
            or isinstance(value, (types.ModuleType, type, int, float, bytes, str))
        ):
            return
        visited.add(id(value))
        if isinstance(value, Mapping) and self._take_mapping(name, value):
            return
        if isinstance(value, (list, tuple)) and self._take_list(name, value):
            return
        library = type(value).__module__.split(".")[0]
        if library in _DECODING and callable(getattr(value, "decode", None)):
            self.tokenizers[id(value)] = value
        if depth < 3 and library not in ("tokenizers", "transformers"):
            for inner, held in _held(value):
                self._visit(inner or name, held, visited, depth + 1)

    def _take_mapping(self, name: str, value: Mapping[Any, Any]) -> bool:
        if not MIN_SIZE <= len(value) <= MAX_SIZE:
            return False
        first_key, first = next(iter(value.items()))
        if isinstance(first_key, str) and _is_whole(first):
            if all(isinstance(k, str) and _is_whole(v) for k, v in value.items()) and _is_dense(
                value.values()
            ):
                if len(self.encoders) < _MAX_FOUND:
                    key = self._key(value)
                    self.encoders.setdefault(key, (name, dict(value)))
                    self._roots.setdefault(id(self.encoders[key][1]), self._root)
                return True
        elif all(_is_whole(k) and isinstance(v, str) for k, v in value.items()):
            if len(self.decoders) < _MAX_FOUND:
                self.decoders.setdefault(id(value), (name, dict(value)))
            return True
        return False

    def _key(self, value: Mapping[str, int]) -> int:
        """Its id, unless that was the id of another one, which is gone by now."""
        known = self.encoders.get(id(value))
        if known is None or all(value.get(word, i) == i for word, i in known[1].items()):
            return id(value)
        return -len(self.encoders)

    def _take_list(self, name: str, value: Any) -> bool:
        if len(value) < MIN_SIZE or not all(isinstance(v, str) for v in value[:50]):
            return False
        if (
            len(value) <= MAX_SIZE
            and all(isinstance(v, str) for v in value)
            and len(set(value)) == len(value)
            and len(self.decoders) < _MAX_FOUND
        ):
            self.decoders.setdefault(id(value), (name, dict(enumerate(value))))
            self._lists.add(id(self.decoders[id(value)][1]))
        return True

    def record(self) -> tuple[VocabularyPair, ...]:
        return tuple(islice(self._pairs(), 20))

    def _pairs(self) -> Iterator[VocabularyPair]:
        """Two vocabularies of nearly the same entries, or one and a table for decoding of the same
        entries.
        """
        encoders = list(self.encoders.values())
        for i, (name, vocabulary) in enumerate(encoders):
            for other_name, other in encoders[i + 1 :]:
                shared = vocabulary.keys() & other.keys()
                if len(shared) >= max(MIN_SIZE, 0.6 * max(len(vocabulary), len(other))):
                    moved = sorted(k for k in shared if vocabulary[k] != other[k])
                    yield _pair(
                        "vocabularies",
                        (name, other_name),
                        len(shared),
                        [(k, vocabulary[k], other[k]) for k in moved],
                        tuple(self._roots.get(id(v), "") for v in (other, vocabulary)),
                    )
            for other_name, table in self.decoders.values():
                back = {v: k for k, v in table.items()}
                shared = vocabulary.keys() & back.keys()
                if len(shared) == len(back) and len(shared) >= max(MIN_SIZE, 0.6 * len(vocabulary)):
                    wrong = sorted(k for k in shared if table.get(vocabulary[k]) != k)
                    kind = "list" if id(table) in self._lists else "decoding"
                    yield _pair(
                        kind,
                        (name, other_name),
                        len(shared),
                        [(k, vocabulary[k], back[k]) for k in wrong],
                    )


def _pair(
    kind: str,
    names: tuple[str, str],
    shared: int,
    moved: list[tuple[str, int, int]],
    holders: tuple[str, ...] = (),
) -> VocabularyPair:
    shifted = (
        len(moved) == shared and len({a - b for _, a, b in moved}) == 1
    )  # special tokens in front of one of them
    return VocabularyPair(kind, names, shared, len(moved), tuple(moved[:4]), shifted, holders)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_dense(values: Any) -> bool:
    """Ids of a vocabulary: all different, and hardly a gap between them."""
    known = list(values)
    return len(set(known)) == len(known) and min(known) >= 0 and max(known) < 1.5 * len(known) + 8


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and len(value) <= 64:
        yield from ((k if isinstance(k, str) else "", v) for k, v in list(value.items()))
    elif isinstance(value, (list, tuple)) and len(value) <= 64:
        yield from (("", v) for v in value)
    elif not isinstance(value, (Mapping, list, tuple, types.FunctionType)):
        yield from list(getattr(value, "__dict__", {}).items())
