"""The masker: known secret values, token formats, and what of them was found in the texts."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from sawbones.masking import values
from sawbones.masking.names import is_secret_flag, is_secret_name, may_be_secret_name

MASK = "[masked]"
MIN_LENGTH = 6  # a shorter value recurs by chance; as an argument it is masked where it stands
_ORDINARY = {
    *("true", "false", "none", "null", "default", "disabled", "enabled", "online", "offline"),
    *("masked", "redacted", MASK, "[redacted]"),
}
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_PREFIX = re.compile(r"-?-?[\w.\-+]*\Z")


class Masker:
    def __init__(self) -> None:
        self._labels: dict[str, str] = {}  # every written form of a secret -> where it came from
        self._ordered: list[str] = []  # the same forms, longest first
        self._seen: set[tuple[str, str]] = set()
        self._found: dict[str, set[int]] = {}

    # what is known

    def learn(self, value: str, label: str) -> None:
        """Masks this value wherever it recurs, as it is and as JSON, source, a URL or HTML write
        it.
        """
        plain = value.strip()
        if len(plain) < MIN_LENGTH or plain.lower() in _ORDINARY or _NUMBER.fullmatch(plain):
            return
        if plain in self._labels:
            return
        for form in _forms(plain):
            self._labels.setdefault(form, label)
        self._ordered = sorted(self._labels, key=len, reverse=True)

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        for name, value in environment.items():
            if name not in ("PWD", "OLDPWD"):
                self.learn_named(name, value, f"env {name}")

    def learn_named(self, name: str, value: str, label: str) -> None:
        """Masks the value if its name, or its name and its form, say that it is a secret."""
        if (name, value) in self._seen:
            return
        self._seen.add((name, value))
        if os.path.exists(value):
            return
        if is_secret_name(name) or (
            may_be_secret_name(name) and values.looks_like_credential(value)
        ):
            self.learn(value, label)

    def learn_arguments(self, argv: Sequence[str]) -> None:
        for _, value, name in _secret_arguments(argv):
            self.learn(value, f"argv {name}")

    @property
    def known(self) -> dict[str, str]:
        """Every form of a secret, with where it came from; never for a file that is kept."""
        return dict(self._labels)

    # masking

    def mask(self, text: str) -> str:
        for form in self._ordered:
            if form in text:
                self._note(self._labels[form], self._labels[form])
                text = text.replace(form, MASK)
        if any(mark in text for mark in values.TOKEN_MARKS):
            text = self._sub(values.TOKEN_FORMAT, text, "token format")
        if "://" in text and "@" in text:
            text = self._sub(values.URL_PASSWORD, text, "password in a URL", group=2)
        if "PRIVATE KEY-----" in text:
            text = self._sub(values.PRIVATE_KEY, text, "private key", group=0)
        if "Bearer " in text or "Basic " in text or "token " in text:
            text = self._sub(values.BEARER, text, "token format", group=2)
        if "wandb.login(" in text:
            text = self._sub(values.WANDB_LOGIN, text, "token format", group=2)
        lower = text.lower()
        if any(mark in lower for mark in values.NAME_MARKS):
            looks = values.looks_like_credential
            text = self._sub(values.NAMED_LITERAL, text, "value beside a secret name", 2, looks)
            text = self._sub(values.NAMED_WORD, text, "value beside a secret name", 2, _is_mixed)
        return text

    def mask_json(self, text: str) -> str:
        """Masked as one text, in which a name and its value stand side by side; it stays JSON."""
        masked = self.mask(text)
        if masked != text:
            try:
                json.loads(masked)
            except ValueError:  # what was masked was no text
                return json.dumps(self.mask_all(json.loads(text)), separators=(",", ":"))
        return masked

    def mask_bytes(self, content: bytes) -> bytes:
        """Of a text file in any encoding: what is not UTF-8 goes through unchanged."""
        text = content.decode("utf-8", "surrogateescape")
        masked = self.mask(text)
        return content if masked == text else masked.encode("utf-8", "surrogateescape")

    def mask_arguments(self, argv: Sequence[str]) -> list[str]:
        """Values of secret flags whatever they look like, and what is a secret by itself."""
        kept = [self.mask(argument) for argument in argv]
        for index, value, name in _secret_arguments(argv):
            self._note(f"argv {name}", f"argv {name}")
            before = argv[index].removesuffix(value) if argv[index] != value else ""
            kept[index] = before + MASK
        return kept

    def mask_all(self, value: Any) -> Any:
        """Every text inside of mappings, sequences and records; the same object where none
        changed.
        """
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, Mapping):
            made = {self.mask_all(k): self.mask_all(v) for k, v in value.items()}
            return made if made != dict(value) else value
        if type(value) in (list, tuple):
            items = [self.mask_all(v) for v in value]
            changed_any = any(a is not b for a, b in zip(items, value, strict=True))
            return type(value)(items) if changed_any else value
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            old = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
            new = {name: self.mask_all(v) for name, v in old.items()}
            changed = {name: v for name, v in new.items() if v is not old[name]}
            return dataclasses.replace(value, **changed) if changed else value
        return value

    @property
    def counts(self) -> dict[str, int]:
        """How many different values were masked, by where they came from."""
        return {label: len(found) for label, found in sorted(self._found.items())}

    def count_anew(self) -> None:
        """For the next recording of this process."""
        self._found = {}

    @contextmanager
    def counting(self) -> Iterator[dict[str, set[int]]]:
        """What is masked inside of it, by itself."""
        before, self._found = self._found, {}
        found = self._found
        try:
            yield found
        finally:
            self._found = before
            for label, values_found in found.items():
                before.setdefault(label, set()).update(values_found)

    def _note(self, label: str, value: str) -> None:
        self._found.setdefault(label, set()).add(hash(value))

    def _sub(
        self,
        pattern: re.Pattern[str],
        text: str,
        label: str,
        group: int = 0,
        wanted: Callable[[str], bool] = bool,
    ) -> str:
        def replaced(match: re.Match[str]) -> str:
            value = match[group]
            if not wanted(value) or MASK in value:
                return match[0]
            self._note(label, value)
            start = match.start(group) - match.start()
            end = match.end(group) - match.start()
            # line numbers stay what they are
            return match[0][:start] + MASK + "\n" * value.count("\n") + match[0][end:]

        return pattern.sub(replaced, text)


def _is_mixed(value: str) -> bool:
    has_digit, has_letter = re.search(r"\d", value), re.search(r"[A-Za-z]", value)
    return has_digit is not None and has_letter is not None


def _forms(value: str) -> set[str]:
    encoded = base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")
    forms = {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(value)[1:-1])[1:-1],
        repr(value)[1:-1],
        quote(value, safe="", errors="replace"),
        html.escape(value),
        value.encode("utf-8", "surrogateescape").hex(),
    }
    if len(encoded) >= 12:
        forms.add(encoded)
    return {form for form in forms if len(form) >= MIN_LENGTH}


def _secret_arguments(argv: Sequence[str]) -> list[tuple[int, str, str]]:
    """(index, value, flag) of every argument that is a secret by its flag or by itself."""
    found: list[tuple[int, str, str]] = []
    flag = ""
    for index, argument in enumerate(argv):
        name, equals, value = argument.partition("=")
        named = bool(equals) and _PREFIX.match(name) is not None
        if flag and not argument.startswith("--") and _is_secret_of(flag, argument):
            found.append((index, argument, flag))
        elif named and value and _is_secret_of(name, value):
            found.append((index, value, name))
        elif values.TOKEN_ARGUMENT.fullmatch(argument) or values.is_random(argument):
            found.append((index, argument, flag or f"argument {index + 1}"))
        flag = argument if argument.startswith("-") and not equals else ""
    return [(index, value, name) for index, value, name in found if value != MASK]


def _is_secret_of(name: str, value: str) -> bool:
    """A dotted name, as configuration systems have it, ends in what it is about."""
    return (
        is_secret_flag(name.rpartition(".")[2])
        or is_secret_name(name)
        or (may_be_secret_name(name) and values.looks_like_credential(value))
        or values.TOKEN_ARGUMENT.fullmatch(value) is not None
        or values.is_random(value)
    )
