"""Every kind of input is read; whatever is wrong with one gives a message or a finding, never a
traceback.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import table

from sawbones import audit
from sawbones.schema import Report


def shares(report: Report) -> list[float]:
    assert not [blind for blind in report.could_not_look if "itself failed" in blind.why]
    return [
        f.params["share"] for f in report.findings if f.fault == "evaluation.leak-contamination"
    ]


@pytest.fixture(scope="module")
def pair() -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = table(300, 1), table(200, 2)
    return train, pd.concat([test.iloc[20:], train.iloc[:20]], ignore_index=True)


def written(frame: pd.DataFrame, folder: Path, kind: str) -> str:
    folder.mkdir()
    halves = [frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]]
    if kind == "parquet":
        frame.to_parquet(folder / "rows.parquet")
        return str(folder / "rows.parquet")
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False)
        return str(folder / "rows.csv")
    if kind == "csv.gz":
        frame.to_csv(folder / "rows.csv.gz", index=False)
        return str(folder / "rows.csv.gz")
    if kind == "jsonl":
        frame.to_json(folder / "rows.jsonl", orient="records", lines=True, double_precision=15)
        return str(folder / "rows.jsonl")
    if kind == "arrow":
        with (
            pa.OSFile(str(folder / "rows.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, pa.Schema.from_pandas(frame)) as writer,
        ):
            writer.write_table(pa.Table.from_pandas(frame, preserve_index=False))
        return str(folder / "rows.arrow")
    for number, half in enumerate(halves):
        half.to_parquet(folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").write_text("")
    return str(folder) if kind == "folder" else str(folder / "part-*.parquet")


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "jsonl", "arrow", "folder", "glob"])
def test_files_of_every_kind(
    pair: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path, kind: str
) -> None:
    paths = [
        written(frame, tmp_path / name, kind)
        for frame, name in zip(pair, ("train", "test"), strict=True)
    ]
    assert shares(audit.leaks(*paths, label="y", model=False)) == [pytest.approx(0.1)]


def test_objects_of_every_kind(pair: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path) -> None:
    import ibis

    train, test = pair
    saved = tmp_path / "saved"  # as datasets.Dataset.save_to_disk lays it out
    saved.mkdir()
    (saved / "state.json").write_text("{}")
    (saved / "dataset_info.json").write_text("{}")
    whole = pa.Table.from_pandas(test, preserve_index=False)
    with (
        pa.OSFile(str(saved / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, whole.schema) as writer,
    ):
        writer.write_table(whole)
    con = ibis.duckdb.connect()
    for name, frame in (("train", train), ("test", test)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        con.raw_sql(f"CREATE TABLE {name} AS SELECT * FROM '{tmp_path / name}.parquet'")
    on_connection = con.table("train")
    sources: dict[str, tuple[object, object]] = {
        "Arrow": (pa.Table.from_pandas(train), pa.Table.from_pandas(test)),
        "datasets folder": (train, str(saved)),
        "Ibis": (on_connection, con.table("test")),
        "Ibis and pandas": (on_connection, test),
        "rows": (train.to_dict("records"), test.to_dict("records")),
    }
    for name, (first, second) in sources.items():
        assert shares(audit.leaks(first, second, label="y", model=False)) == [pytest.approx(0.1)], (
            name
        )
    left = con.raw_sql("SELECT table_name FROM duckdb_tables()").fetchall()
    assert sorted(left) == [
        ("test",),
        ("train",),
    ]  # nothing of ours is left on the caller's connection


def test_a_torch_dataset_is_read_by_module_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_sets.py").write_text(
        "import torch\n"
        "from torch.utils.data import TensorDataset\n"
        "g = torch.Generator().manual_seed(0)\n"
        "x, y = torch.randn(300, 3, 16, generator=g), torch.randint(0, 2, (300,), generator=g)\n"
        "train = TensorDataset(x[:200], y[:200])\n"
        "def test():\n"
        "    return TensorDataset(torch.cat([x[200:], x[:10]]), torch.cat([y[200:], y[:10]]))\n"
    )
    monkeypatch.chdir(tmp_path)
    report = audit.leaks("some_sets:train", "some_sets:test", label="label", model=False)
    assert shares(report) == [pytest.approx(10 / 110)]


def hostile(folder: Path) -> dict[str, tuple[str, str]]:
    """name -> (train file, test file)."""
    good = table(200, 1)
    good.to_csv(folder / "good.csv", index=False)
    text = (folder / "good.csv").read_text()
    lines = text.splitlines()
    files: dict[str, bytes] = {
        "broken rows": "\n".join(
            [*lines[:100], "1,2", '"never closed', "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", *lines[100:]]
        ).encode(),
        "mixed types": "\n".join(
            [*lines[:60], *(("abc," + line.split(",", 1)[1]) for line in lines[60:])]
        ).encode(),
        "all-null columns": "\n".join(
            [lines[0] + ",nothing", *(line + "," for line in lines[1:])]
        ).encode(),
        "one row": "\n".join(lines[:2]).encode(),
        "zero rows": (lines[0] + "\n").encode(),
        "nothing": b"",
        "not UTF-8": text.replace("city 1", "M\xfcnchen").encode("latin-1"),
        "columns missing": good.drop(columns=["f1", "plan"]).to_csv(index=False).encode(),
        "no shared column": b"a,b\n1,2\n3,4\n",
        "binary": bytes(range(256)) * 40,
        (
            "only a header with odd names"
        ): b'"","a b","select","x.y","\xc3\xa9"\n1,2,3,4,5\n2,3,4,5,6\n',
        "a label with one value": good.assign(y=1).to_csv(index=False).encode(),
        "infinite": good.assign(f1=np.inf).to_csv(index=False).encode(),
    }
    for name, content in files.items():
        (folder / f"{name}.csv").write_bytes(content)
    many = pd.DataFrame(
        {
            "city": [f"key {i}" for i in range(1_000_000)],
            "visits": np.arange(1_000_000) % 12,
            "y": np.arange(1_000_000) % 2,
        }
    )
    pq.write_table(pa.Table.from_pandas(many), folder / "a million categories.parquet")
    good.to_parquet(folder / "whole.parquet")
    (folder / "half a Parquet file.parquet").write_bytes(
        (folder / "whole.parquet").read_bytes()[:3000]
    )
    (folder / "broken JSON lines.jsonl").write_text(
        '{"f0": 1, "y": 0}\n{"f0": 2, "y":\nnothing\n{"f0": 3, "y": 1}\n'
    )
    (folder / "no gzip.csv.gz").write_bytes(text.encode())
    others = [
        "a million categories.parquet",
        "half a Parquet file.parquet",
        "broken JSON lines.jsonl",
        "no gzip.csv.gz",
    ]
    return {
        name.split(".")[0]: (str(folder / "good.csv"), str(folder / name))
        for name in [*(f"{n}.csv" for n in files), *others]
    }


@pytest.fixture(scope="module")
def hostile_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    return hostile(tmp_path_factory.mktemp("hostile"))


NAMES = [
    "broken rows",
    "mixed types",
    "all-null columns",
    "one row",
    "zero rows",
    "nothing",
    "not UTF-8",
    "columns missing",
    "no shared column",
    "binary",
    "only a header with odd names",
    "a label with one value",
    "infinite",
    "a million categories",
    "half a Parquet file",
    "broken JSON lines",
    "no gzip",
]
# What is said of each, by any of the four commands: a part of the message, of a note or of a
# finding.
SAID = {
    "broken rows": "could not be read",
    "all-null columns": "nothing",
    "one row": "rows",
    "zero rows": "no rows",
    "nothing": "empty",
    "not UTF-8": "Latin-1",
    "columns missing": "plan",
    "no shared column": "share no column",
    "infinite": "infinite",
    "a million categories": "too many different values",
    "half a Parquet file": "cannot be read",
    "broken JSON lines": "cannot be read",
    "no gzip": "cannot be read",
    "mixed types": "f0",
}


@pytest.fixture(scope="module")
def word_pieces(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"<unk>": 0, "city": 1} | {str(i): i + 2 for i in range(60)}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    made.save(str(path))
    return str(path)


def commands(first: str, second: str, tokenizer: str) -> dict[str, list[str]]:
    return {
        "leaks": ["leaks", "--train", first, "--test", second, "--label", "y"],
        "shift": ["shift", "--reference", first, "--current", second, "--label", "y"],
        "tokens": [
            "tokens",
            "--tokenizer",
            tokenizer,
            "--data",
            second,
            "--text",
            "city",
            "--max-length",
            "16",
        ],
        "data": ["data", "--train", second, "--label", "y"],
    }


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_all_four_commands_answer_a_hostile_file(
    hostile_files: dict[str, tuple[str, str]],
    word_pieces: str,
    capsys: pytest.CaptureFixture[str],
    name: str,
    swapped: bool,
) -> None:
    from sawbones.cli.audit import run

    first, second = hostile_files[name][:: -1 if swapped else 1]
    said = ""
    for command, args in commands(first, second, word_pieces).items():
        with pytest.raises(SystemExit) as end:
            run([*args, "--json", "-"])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err, command
        assert "itself failed" not in shown.out, (command, shown.out)
        assert end.value.code in (0, 1) if shown.out else end.value.code == 2, command
        assert shown.out or len(shown.err) > 40, command
        said += shown.out + shown.err
    assert SAID.get(name, "") in said


def test_what_was_done_about_a_hostile_file_is_said(
    hostile_files: dict[str, tuple[str, str]],
) -> None:
    broken = audit.data(hostile_files["broken rows"][1])
    assert any("could not be read" in f.title for f in broken.findings)
    latin = audit.data(hostile_files["not UTF-8"][1])
    assert any("Latin-1" in note for note in latin.notes)
    missing = audit.leaks(*hostile_files["columns missing"], label="y", model=False)
    assert any("only in train: f1, plan" in note for note in missing.notes)
    vanished = audit.shift(*hostile_files["columns missing"], label="y")
    assert {f.params["column"] for f in vanished.findings} == {"f1", "plan"}
    with pytest.raises(audit.AuditError, match="no rows"):
        audit.data(hostile_files["zero rows"][1])
    numbers = table(200, 1)
    numbers.loc[3, "f1"] = np.inf
    infinite = audit.data(numbers)
    assert [f.fault for f in infinite.findings] == ["data.nonfinite-input"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: audit.data("nowhere.parquet"), "no file nowhere.parquet"),
        (lambda: audit.data("os:nothing_there"), "could not be made"),
        (lambda: audit.data(3), "holds no rows"),
        (lambda: audit.data(pd.DataFrame()), "no columns"),
        (lambda: audit.data(pd.DataFrame({"a": [1, 2]}), label="b"), "no such column"),
        (lambda: audit.data(pd.DataFrame({"a": [1, 2]}), thresholds={"aucc": 1}), "Nearest: auc"),
        (lambda: audit.data(pd.DataFrame({"a": [1, 2]}), engine="flink"), "Engines: duckdb, spark"),
        (
            lambda: audit.data(pd.DataFrame({"a": [1, 2]}), memory_limit="lots"),
            "A size such as 2GB",
        ),
        (lambda: audit.tokens("nowhere.json", pd.DataFrame({"a": ["x"]})), "no such file"),
    ],
)
def test_mistakes_are_answered_with_what_to_do(call, said: str) -> None:
    with pytest.raises(audit.AuditError, match=said):
        call()


def test_mixed_objects_in_a_data_frame_are_read_as_text() -> None:
    frame = pd.DataFrame(
        {
            "a": [1, "two", 3.0, None, b"four"] * 20,
            "b": [[1, 2]] * 100,
            "c": [{"k": 1}] * 100,
            "d": range(100),
        }
    )
    report = audit.data(frame)
    assert not [blind for blind in report.could_not_look if "itself failed" in blind.why]
    assert any("mixes types" in note for note in report.notes)


def test_thresholds_come_from_pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = table(300, 1), table(200, 2)
    test = pd.concat([test, train.iloc[:20]])
    (tmp_path / "pyproject.toml").write_text("[tool.sawbones.audit]\ncontamination = 0.5\n")
    monkeypatch.chdir(tmp_path)
    report = audit.leaks(train, test, model=False)
    assert report.findings == ()
    assert report.environment["audit"]["thresholds"]["contamination"] == 0.5
