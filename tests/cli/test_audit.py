"""sawbones audit: exit codes, JSON, HTML and messages, as a user or a CI job meets them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "audits"))

from planted import table, texts

from sawbones.audits.options import Thresholds
from sawbones.audits.runner import pages
from sawbones.cli.main import main
from sawbones.pages import HEADINGS, explain
from sawbones.report.json_report import from_json, report_schema


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    train, test = table(400, 1), table(300, 2)
    train.to_parquet("train.parquet")
    test.to_parquet("test.parquet")
    leaking = [
        f.assign(leak=f["y"] + 0.1 * f["f3"], city=f["city"] + " <script>alert(1)</script>")
        for f in (train, test)
    ]
    leaking[0].to_csv("leak_train.csv", index=False)
    pd.concat([leaking[1], leaking[0].iloc[:30]]).to_csv("leak_test.csv", index=False)
    test.assign(f4=test["f4"] + 2).to_parquet("moved.parquet")
    return tmp_path


def status(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["audit", *args])
    return int(end.value.code or 0)


def test_clean_splits_exit_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        status(
            "leaks",
            "--train",
            "train.parquet",
            "--test",
            "test.parquet",
            "--label",
            "y",
            "--no-model",
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "HEALTHY  No fault found" in said
    assert "700 rows" in said


def test_findings_exit_with_1_and_follow_the_report_contract(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [
        "leaks",
        "--train",
        "leak_train.csv",
        "--test",
        "leak_test.csv",
        "--label",
        "y",
        "--no-model",
    ]
    assert status(*args, "--json", "report.json", "--html", "report.html") == 1
    said = capsys.readouterr().out
    assert "evaluation.leak-target" in said
    assert "evaluation.leak-contamination" in said
    document = json.loads(Path("report.json").read_text())
    jsonschema.validate(document, report_schema())
    report = from_json(document)
    assert {f.fault for f in report.findings} == {
        "evaluation.leak-target",
        "evaluation.leak-contamination",
    }
    facts = report.environment["audit"]
    assert facts["thresholds"] == Thresholds().as_dict()
    assert [split["rows"] for split in facts["splits"]] == [400, 330]
    page = Path("report.html").read_text()
    assert "leak alone gives y away" in page
    assert "<svg" in page
    assert "<script" not in page  # a page without scripts, whatever the data holds


def test_a_shift_is_drawn_side_by_side(folder: Path) -> None:
    assert (
        status(
            "shift",
            "--reference",
            "train.parquet",
            "--current",
            "moved.parquet",
            "--label",
            "y",
            "--html",
            "page.html",
            "--quiet",
        )
        == 1
    )
    page = Path("page.html").read_text()
    assert "reference, 400 rows" in page
    assert "current, 300 rows" in page
    assert page.index(">f4 ") < page.index(">f3<")  # what moved most comes first


def test_json_on_standard_output_is_nothing_but_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("data", "--train", "train.parquet", "--label", "y", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "healthy"


def test_values_of_the_data_are_passed_on_only_when_that_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    splits = ["--train", "leak_train.csv", "--test", "leak_test.csv"]
    others = "f0,f1,f2,f3,f4,f5,gap,price"
    args = ["leaks", *splits, "--label", "y", "--no-model", "--ignore", others]
    value = "alert(1)"
    assert status(*args) == 1
    assert value in capsys.readouterr().out
    assert status(*args, "--json", "report.json", "--html", "report.html") == 1
    for text in (Path("report.json").read_text(), Path("report.html").read_text()):
        assert value not in text
    assert status(*args, "--json", "report.json", "--show-data") == 1
    assert value in Path("report.json").read_text()
    capsys.readouterr()
    assert status(*args, "--redact") == 1
    assert value not in capsys.readouterr().out
    assert status(*args, "--redact", "--show-data") == 2


def test_tokens_from_the_command_line(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    made = Tokenizer(models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(
        texts(200, 1), trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False)
    )
    made.save("tok.json")
    pd.DataFrame({"body": texts(200, 2)}).to_json("texts.jsonl", orient="records", lines=True)
    assert (
        status("tokens", "--tokenizer", "tok.json", "--data", "texts.jsonl", "--max-length", "512")
        == 0
    )
    assert (
        status(
            "tokens",
            "--tokenizer",
            "tok.json",
            "--data",
            "texts.jsonl",
            "--text",
            "body",
            "--max-length",
            "30",
        )
        == 1
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["data", "--train", "nowhere.csv"], "no file nowhere.csv"),
        (["data", "--train", "train.parquet", "--label", "label"], "no such column"),
        (["data", "--train", "train.parquet", "--threshold", "auc"], "NAME=VALUE"),
        (["data", "--train", "train.parquet", "--threshold", "aux=1"], "no threshold 'aux'"),
        (["data", "--train", "train.parquet", "--engine", "flink"], "Engines"),
        (["data", "--train", "train.parquet", "--json", "nowhere/report.json"], "does not exist"),
    ],
)
def test_usage_errors_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    assert status(*args) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_every_audited_fault_has_a_page_in_the_form_of_the_catalogue() -> None:
    assert set(pages()) == {
        "evaluation.leak-target",
        "evaluation.leak-group",
        "evaluation.leak-temporal",
        "deployment.covariate-shift",
        "deployment.label-shift",
        "deployment.concept-drift",
        "deployment.pipeline-drift",
        "deployment.subgroup",
    }
    for fault in pages():
        page = explain(fault)
        assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(HEADINGS)
        code = [
            part.split("\n## ")[0]
            for part in page.split("## Example\n")[1:] + page.split("## Use instead\n")[1:]
        ]
        for block in code:
            compile("\n".join(line[4:] for line in block.splitlines()), fault, "exec")


def test_the_thresholds_in_the_guide_are_the_thresholds() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "audit.md").read_text()
    for name, value in Thresholds().as_dict().items():
        assert f"| `{name}` | {value:g} |" in guide
