"""Texts through a tokenizer, once for all audits: lengths, unknown tokens, special tokens, what comes back from decoding."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.audits.case import Case
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import Split
from sawbones.audits.options import AuditError, CannotLook

MOST_TEXTS = 50_000
MOST_DECODED = 5_000
CHUNK = 1000
ROLES = {
    "unk": ("<unk>", "[UNK]", "<UNK>", "<|unk|>"),
    "pad": ("<pad>", "[PAD]", "<PAD>", "<|pad|>"),
    "bos": ("<s>", "<bos>", "[CLS]", "<|begin_of_text|>", "<BOS>"),
    "eos": ("</s>", "<eos>", "[SEP]", "<|endoftext|>", "<|end_of_text|>", "<EOS>"),
}


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer, and what its files say of its special tokens."""

    tokenizer: Any
    path: str
    tokens: dict[str, int]
    special: dict[str, int]  # text -> id
    roles: dict[str, str]  # unk, pad, bos, eos -> text
    limit: int | None = None  # tokens at which the file itself cuts

    def id_of(self, role: str) -> int | None:
        return self.tokens.get(self.roles.get(role, ""))


@dataclass
class Encoded:
    """What became of one split's texts."""

    split: Split
    texts: int = 0
    stride: int = 1
    empty: int = 0
    doubled: int = 0
    tokens: int = 0
    unknown: int = 0
    top_id: int = -1
    decoded: int = 0
    altered: int = 0  # came back different even without case, accents and spaces
    folded: int = 0  # came back different only in those
    with_special: int = 0  # hold the text of a special token
    ends_in_eos: int = 0
    no_token: int = 0
    lengths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    examples: dict[str, list[str]] = field(default_factory=dict)

    def show(self, kind: str, text: str) -> None:
        self.examples.setdefault(kind, [])
        if len(self.examples[kind]) < 10:
            self.examples[kind].append(text)


def vocabulary(path: str) -> Vocabulary:
    file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise AuditError(
            f"--tokenizer {path}: no such file. A tokenizer.json of the tokenizers library, or a folder with one, was expected"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise AuditError('the audit of tokens needs tokenizers, which is not installed: pip install "sawbones[train]"') from error
    try:
        loaded = Tokenizer.from_file(str(file))
    except Exception as error:
        raise AuditError(f"--tokenizer {path} cannot be read as a tokenizer.json: {str(error).splitlines()[0][:200]}") from error
    tokens: dict[str, int] = loaded.get_vocab(with_added_tokens=True)
    special = {str(t.content): int(i) for i, t in loaded.get_added_tokens_decoder().items() if t.special}
    return Vocabulary(loaded, path, tokens, special, _roles(file, tokens, special, loaded), _limit(loaded))


def _limit(loaded: Any) -> int | None:
    truncation = getattr(loaded, "truncation", None) or {}
    return int(truncation["max_length"]) if truncation.get("max_length") else None


def _roles(file: Path, tokens: dict[str, int], special: dict[str, int], loaded: Any) -> dict[str, str]:
    found = {}
    for role, names in ROLES.items():
        text = next((n for n in names if n in special), None) or next((n for n in names if n in tokens), None)
        if text:
            found[role] = text
    unknown = getattr(loaded.model, "unk_token", None)
    if isinstance(unknown, str):
        found["unk"] = unknown
    config = file.with_name("tokenizer_config.json")
    if config.is_file():
        try:
            said = json.loads(config.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return found
        for role in ROLES:
            value = said.get(f"{role}_token")
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                found[role] = text
    return found


def vocabulary_of(case: Case) -> Vocabulary:
    if "vocabulary" not in case.found:
        case.found["vocabulary"] = vocabulary(str(case.options.tokenizer))
    found: Vocabulary = case.found["vocabulary"]
    return found


def text_column(case: Case) -> str:
    if case.options.text:
        return case.options.text
    texts = [n for n in case.shared if case.first.columns[n].kind == "text"] or [n for n in case.shared if case.first.is_text(n)]
    if not texts:
        raise CannotLook("no column of text (name one: --text COLUMN)")
    return texts[0]


def encoded(case: Case) -> list[Encoded]:
    """Every split's texts through the tokenizer."""
    if "encoded" not in case.found:
        case.found["encoded"] = [_encoded(case, split) for split in case.splits.values()]
    found: list[Encoded] = case.found["encoded"]
    return found


def _encoded(case: Case, split: Split) -> Encoded:
    known, name = vocabulary_of(case), text_column(case)
    known.tokenizer.no_truncation()
    known.tokenizer.no_padding()
    table = split.table.select(t=split.table[name].cast("string").fill_null(""))
    found = Encoded(split, stride=-(-split.rows // MOST_TEXTS))
    _doubled(case, table, found)
    if found.stride > 1:
        table = table.filter((table.t.hash() % found.stride) == 0)
        case.notes.append(f"{split.role}: one text in {found.stride} was tokenized")
    unknown, eos = known.id_of("unk"), known.id_of("eos")
    lengths: list[int] = []
    for batch in case.session.batches(table, CHUNK):
        texts = batch.column(0).to_pylist()
        made = known.tokenizer.encode_batch(texts)
        for text, one in zip(texts, made, strict=True):
            ids = one.ids
            lengths.append(len(ids))
            found.texts += 1
            found.empty += not text.strip()
            if ids:
                found.top_id = max(found.top_id, max(ids))
                found.ends_in_eos += ids[-1] == eos
                if unknown is not None and (count := ids.count(unknown)):
                    found.unknown += count
                    found.show("unknown", case.shown(text))
            elif text.strip():
                found.no_token += 1
            found.tokens += len(ids)
            if any(special in text for special in known.special):
                found.with_special += 1
                found.show("special", case.shown(text))
        _decode(case, known, texts, made, found)
    found.lengths = np.array(lengths, dtype=np.int64)
    return found


def _doubled(case: Case, table: Any, found: Encoded) -> None:
    ibis = ibis_module()
    wide = table.select(a=table.t.hash(), b=ibis.literal("#").concat(table.t).hash())
    groups = wide.group_by(["a", "b"]).aggregate(n=wide.count())
    row = case.session.rows(groups.aggregate(distinct=groups.count()))[0]
    found.doubled = found.split.rows - int(row["distinct"])


def _decode(case: Case, known: Vocabulary, texts: list[str], made: list[Any], found: Encoded) -> None:
    room = MOST_DECODED - found.decoded
    if room <= 0:
        return
    some = [(t, m.ids) for t, m in zip(texts, made, strict=True) if t.strip()][:room]
    back = known.tokenizer.decode_batch([ids for _, ids in some], skip_special_tokens=True)
    for (text, _), again in zip(some, back, strict=True):
        found.decoded += 1
        for special in known.special:
            text = text.replace(special, "")
        if "".join(text.split()) == "".join(again.split()):
            continue
        if _folded(text) == _folded(again):
            found.folded += 1
        else:
            found.altered += 1
            found.show("altered", f"“{case.shown(text)}” came back as “{case.shown(again)}”")


def _folded(text: str) -> str:
    """Without case, accents, spaces and compatibility forms: what an uncased tokenizer drops on purpose."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain if not c.isspace() and not unicodedata.combining(c))
