"""Texts through a tokenizer, once for all audits: lengths, unknown tokens, special tokens, what
comes back from decoding.
"""

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
MOST_COMPARED = 2_000
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
    from_left: bool = False  # the file says to cut at the front
    rows: int | None = None  # of the embedding, where a config.json beside it says so

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
    other_ids: int = 0  # texts that the checkpoint's tokenizer encodes differently
    compared: int = 0
    lengths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    answers: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # tokens of each answer, with --answer
    examples: dict[str, list[str]] = field(default_factory=dict)

    def show(self, kind: str, text: str) -> None:
        self.examples.setdefault(kind, [])
        if len(self.examples[kind]) < 10:
            self.examples[kind].append(text)


def vocabulary(path: str) -> Vocabulary:
    file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise AuditError(
            f"--tokenizer {path}: no such file. A tokenizer.json of the tokenizers "
            "library, or a folder with one, was expected"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise AuditError(
            "the audit of tokens needs tokenizers, which is not installed: pip install "
            '"sawbones[train]"'
        ) from error
    try:
        loaded = Tokenizer.from_file(str(file))
    except Exception as error:
        raise AuditError(
            f"--tokenizer {path} cannot be read as a tokenizer.json: "
            f"{str(error).splitlines()[0][:200]}"
        ) from error
    tokens: dict[str, int] = loaded.get_vocab(with_added_tokens=True)
    special = {
        str(t.content): int(i) for i, t in loaded.get_added_tokens_decoder().items() if t.special
    }
    truncation = getattr(loaded, "truncation", None) or {}
    limit = int(truncation["max_length"]) if truncation.get("max_length") else None
    left = str(truncation.get("direction", "")).lower() == "left"
    return Vocabulary(
        loaded,
        path,
        tokens,
        special,
        _roles(file, tokens, special, loaded),
        limit,
        left,
        _rows(file),
    )


def _rows(file: Path) -> int | None:
    """`vocab_size` of the model's config.json in the same folder: what the embedding was made
    with.
    """
    try:
        found = json.loads(file.with_name("config.json").read_text(encoding="utf-8")).get(
            "vocab_size"
        )
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, int) and found > 0 else None


def _roles(
    file: Path, tokens: dict[str, int], special: dict[str, int], loaded: Any
) -> dict[str, str]:
    found = {}
    for role, names in ROLES.items():
        text = next((n for n in names if n in special), None) or next(
            (n for n in names if n in tokens), None
        )
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
    apart = {case.options.answer, *case.first.id_columns}
    strings = [n for n in case.shared if case.first.is_text(n) and n not in apart]
    texts = [n for n in strings if case.first.columns[n].kind == "text"] or strings
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
    known, name, answer = vocabulary_of(case), text_column(case), case.options.answer
    other = (
        vocabulary(case.options.checkpoint_tokenizer) if case.options.checkpoint_tokenizer else None
    )
    for one in (known, other):
        if one is not None:
            one.tokenizer.no_truncation()
            one.tokenizer.no_padding()
    columns = {"t": split.table[name].cast("string").fill_null("")}
    if answer is not None and answer in split.columns:
        columns["a"] = split.table[answer].cast("string").fill_null("")
    table = split.table.select(**columns)
    found = Encoded(split, stride=-(-split.rows // MOST_TEXTS))
    _doubled(case, table, found)
    if found.stride > 1:
        table = table.filter((table.t.hash() % found.stride) == 0)
        case.notes.append(f"{split.role}: one text in {found.stride} was tokenized")
    unknown, eos = known.id_of("unk"), known.id_of("eos")
    lengths: list[int] = []
    answers: list[int] = []
    for batch in case.session.batches(table, CHUNK):
        texts, starts = _whole(batch)
        made = known.tokenizer.encode_batch(texts)
        _compare(other, texts, made, found)
        for text, one, start in zip(texts, made, starts, strict=True):
            ids = one.ids
            lengths.append(len(ids))
            if start is not None:
                answers.append(
                    sum(
                        1
                        for (a, b), i in zip(one.offsets, ids, strict=True)
                        if a >= start and b > a and i != eos
                    )
                )
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
    found.lengths, found.answers = (
        np.array(lengths, dtype=np.int64),
        np.array(answers, dtype=np.int64),
    )
    return found


def _whole(batch: Any) -> tuple[list[str], list[int | None]]:
    """Each sample as one text, and where its answer begins; a text that ends in its answer already
    is whole.
    """
    texts = batch.column(0).to_pylist()
    if batch.num_columns == 1:
        return texts, [None] * len(texts)
    answers = batch.column(1).to_pylist()
    joined = [t if a and t.endswith(a) else t + a for t, a in zip(texts, answers, strict=True)]
    return joined, [len(t) - len(a) for t, a in zip(joined, answers, strict=True)]


def _compare(other: Vocabulary | None, texts: list[str], made: list[Any], found: Encoded) -> None:
    """Equal vocabularies may still make other tokens of a text: merges, normaliser and template
    belong to a tokenizer too.
    """
    room = MOST_COMPARED - found.compared
    if other is None or room <= 0:
        return
    again = other.tokenizer.encode_batch(texts[:room])
    found.compared += len(again)
    for text, one, two in zip(texts, made, again, strict=False):
        if one.ids != two.ids:
            found.other_ids += 1
            found.show("checkpoint", text)


def _doubled(case: Case, table: Any, found: Encoded) -> None:
    ibis = ibis_module()
    text = table.t.concat("\x1f", table.a) if "a" in table.columns else table.t
    wide = table.select(a=text.hash(), b=ibis.literal("#").concat(text).hash())
    groups = wide.group_by(["a", "b"]).aggregate(n=wide.count())
    row = case.session.rows(groups.aggregate(distinct=groups.count()))[0]
    found.doubled = found.split.rows - int(row["distinct"])


def _decode(
    case: Case, known: Vocabulary, texts: list[str], made: list[Any], found: Encoded
) -> None:
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
    """Without case, accents, spaces and compatibility forms: what an uncased tokenizer drops on
    purpose.
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain if not c.isspace() and not unicodedata.combining(c))
