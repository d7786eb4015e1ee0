"""Audits of a tokenizer and of one data set: each fault is found, clean ones give nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import altered, table, texts

from sawbones import audit
from sawbones.schema import Report


def faults(report: Report) -> list[str]:
    assert not [blind for blind in report.could_not_look if "itself failed" in blind.why]
    return sorted({finding.fault for finding in report.findings})


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<unk>", "<pad>", "</s>"], show_progress=False
    )
    made.train_from_iterator(texts(300, 1), trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return str(path)


def frame(some: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"body": some})


TEXTS = texts(400, 2)
CASES: dict[str, tuple[list[str], dict[str, Any], list[str]]] = {
    "clean": (TEXTS, {"max_length": 512}, []),
    "cut": (TEXTS, {"max_length": 60}, ["pipeline.truncation"]),
    "unknown letters": (
        [f"{t} äöü" for t in TEXTS],
        {"max_length": 512},
        ["pipeline.tokenizer-mismatch"],
    ),
    "special tokens in the text": (
        [*TEXTS, *(f"{t} </s> more" for t in TEXTS[:9])],
        {},
        ["pipeline.special-tokens"],
    ),
    "empty": ([*TEXTS, *[""] * 30], {}, ["data.degenerate-samples"]),
    "twice": ([*TEXTS, *TEXTS[:30]], {}, ["data.degenerate-samples"]),
    "ids beyond the embedding": (TEXTS, {"vocab_size": 200}, ["pipeline.token-out-of-vocab"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_tokenizer_on_texts(tokenizer: str, name: str) -> None:
    some, options, expected = CASES[name]
    report = audit.tokens(tokenizer, frame(some), text="body", **options)
    assert faults(report) == expected


def test_unknown_tokens_that_jump_between_splits(tokenizer: str) -> None:
    odd = [f"{t} ä" if i % 3 == 0 else t for i, t in enumerate(texts(300, 3))]
    report = audit.tokens(
        tokenizer, frame(TEXTS), test=frame(odd), thresholds={"unknown": 0.006, "round_trip": 0.9}
    )
    assert "pipeline.tokenizer-mismatch" in faults(report)


def test_a_checkpoint_with_another_vocabulary(tokenizer: str, tmp_path: Path) -> None:
    same = tmp_path / "same.json"
    same.write_text(Path(tokenizer).read_text())
    assert faults(audit.tokens(tokenizer, frame(TEXTS), checkpoint_tokenizer=str(same))) == []
    other = json.loads(Path(tokenizer).read_text())
    vocabulary = other["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.get)[50:52]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (tmp_path / "other.json").write_text(json.dumps(other))
    report = audit.tokens(
        tokenizer, frame(TEXTS), checkpoint_tokenizer=str(tmp_path / "other.json")
    )
    assert faults(report) == ["pipeline.tokenizer-mismatch"]
    assert report.findings[0].params["moved"] == 2


def test_a_checkpoint_that_cuts_the_same_words_differently(tokenizer: str, tmp_path: Path) -> None:
    other = json.loads(Path(tokenizer).read_text())
    other["normalizer"] = {"type": "Lowercase"}
    (tmp_path / "other.json").write_text(json.dumps(other))
    loud = [*(text.upper() for text in TEXTS[:20]), *TEXTS]
    report = audit.tokens(
        tokenizer,
        frame(loud),
        checkpoint_tokenizer=str(tmp_path / "other.json"),
        thresholds={"unknown": 0.5},
    )
    found = [f for f in report.findings if "checkpoint" in f.title]
    assert [(f.fault, f.params["moved"], f.params["texts"]) for f in found] == [
        ("pipeline.tokenizer-mismatch", 0, 20)
    ]


def test_answers_and_ends_that_are_cut_off_are_counted(tokenizer: str, tmp_path: Path) -> None:
    document = json.loads(Path(tokenizer).read_text())
    end = document["added_tokens"][2]
    assert end["content"] == "</s>"
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"</s>": {"id": "</s>", "ids": [end["id"]], "tokens": ["</s>"]}},
    }
    (tmp_path / "ending.json").write_text(json.dumps(document))
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(tmp_path / "ending.json"))
    prompts, answers = texts(100, 5), [f" {text}" for text in texts(100, 6)]
    whole = [len(loaded.encode(p + a).ids) for p, a in zip(prompts, answers, strict=True)]
    limit = sorted(whole)[60]
    spoken = [len(loaded.encode(a).ids) - 1 for a in answers]
    rows = pd.DataFrame({"prompt": prompts, "answer": answers})
    report = audit.tokens(
        str(tmp_path / "ending.json"), rows, text="prompt", answer="answer", max_length=limit
    )
    (finding,) = report.findings
    assert finding.fault == "pipeline.truncation"
    assert finding.params["ends_lost"] == sum(n > limit for n in whole)
    assert finding.params["answers_cut"] == sum(n - 1 > limit for n in whole)
    assert finding.params["answers_lost"] == sum(
        n - 1 - limit >= a for n, a in zip(whole, spoken, strict=True)
    )
    # Few texts are cut, but each of them loses its whole answer.
    long = [*prompts[:95], *(f"{p} {p} {p} {p} {p} {p} {p} {p}" for p in prompts[95:])]
    rare = pd.DataFrame({"prompt": long, "answer": [answers[0][:4]] * 100})
    report = audit.tokens(
        str(tmp_path / "ending.json"),
        rare,
        text="prompt",
        answer="answer",
        max_length=max(whole),
        thresholds={"truncated": 0.2},
    )
    assert [(f.fault, f.params["answers_lost"]) for f in report.findings] == [
        ("pipeline.truncation", 5)
    ]


def test_ids_that_were_made_before_are_compared_with_the_embedding(
    tokenizer: str, tmp_path: Path
) -> None:
    rows = pd.DataFrame(
        {"body": TEXTS[:100], "input_ids": [[1, 2, 3, -100, i % 50] for i in range(100)]}
    )
    assert faults(audit.tokens(tokenizer, rows)) == []
    rows["input_ids"] = [[1, 2, 300 if i == 7 else 4] for i in range(100)]
    report = audit.tokens(tokenizer, rows, text="body")
    assert [(f.fault, f.params["column"], f.params["rows"]) for f in report.findings] == [
        ("pipeline.token-out-of-vocab", "input_ids", 1)
    ]
    (tmp_path / "tokenizer.json").write_text(Path(tokenizer).read_text())
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 120}))
    assert faults(audit.tokens(str(tmp_path), frame(TEXTS[:100]))) == [
        "pipeline.token-out-of-vocab"
    ]


def test_pad_that_is_eos_is_suspected(tokenizer: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(Path(tokenizer).read_text())
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"pad_token": "</s>", "eos_token": {"content": "</s>"}})
    )
    report = audit.tokens(str(tmp_path), frame(TEXTS))
    assert [(f.fault, f.status) for f in report.findings] == [
        ("pipeline.special-tokens", "suspected")
    ]
    assert report.verdict == "healthy"


def test_a_limit_set_in_the_file_is_used(tokenizer: str, tmp_path: Path) -> None:
    document = json.loads(Path(tokenizer).read_text())
    document["truncation"] = {
        "direction": "Right",
        "max_length": 50,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    (tmp_path / "cut.json").write_text(json.dumps(document))
    assert faults(audit.tokens(str(tmp_path / "cut.json"), frame(TEXTS))) == ["pipeline.truncation"]


DATA: dict[str, tuple[pd.DataFrame, list[str]]] = {
    "clean": (table(1000, 1), []),
    "several classes": (table(1000, 1, classes=5), []),
    "twice": (pd.concat([table(1000, 1), table(1000, 1).iloc[:50]]), ["data.degenerate-samples"]),
    "contradicting": (
        pd.concat([table(1000, 1), table(1000, 1).iloc[:50].assign(y=lambda f: 1 - f["y"])]),
        ["data.degenerate-samples", "data.labels-misaligned"],
    ),
    "empty rows": (
        pd.concat([table(1000, 1), pd.DataFrame([{}] * 40)]),
        ["data.degenerate-samples", "data.label-out-of-range"],
    ),
    "one class": (table(500, 1, rate=0.0), ["data.class-imbalance"]),
    "a rare class": (table(5000, 1, rate=0.002), ["data.class-imbalance"]),
    "labels from 1": (
        table(1000, 1, classes=4).assign(y=lambda f: f["y"] + 1),
        ["data.label-out-of-range"],
    ),
    "missing labels": (
        table(1000, 1).assign(y=lambda f: f["y"].where(f.index % 10 > 0)),
        ["data.label-out-of-range"],
    ),
    "infinite": (
        table(1000, 1).assign(f1=lambda f: f["f1"].where(f.index != 5, np.inf)),
        ["data.nonfinite-input"],
    ),
    "a feature that is the label": (
        table(1000, 1).assign(copy=lambda f: f["y"] + 0.01 * f["f1"]),
        ["evaluation.leak-target"],
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_one_data_set_by_itself(name: str) -> None:
    rows, expected = DATA[name]
    assert faults(audit.data(rows, label="y")) == expected


def test_texts_that_nearly_repeat_each_other() -> None:
    some = texts(300, 4)
    assert faults(audit.data(frame(some))) == []
    report = audit.data(
        frame([*some, *(altered(text, 0.02, i) for i, text in enumerate(some[:20]))])
    )
    assert faults(report) == ["data.degenerate-samples"]
    assert "nearly repeat" in report.findings[0].title
