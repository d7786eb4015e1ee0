"""What an audit costs and finds, beside Deepchecks, Evidently and datasketch, in one run.

    python benchmarks/audit.py --peers ENV/bin/python          # 500,000 + 500,000 rows x 20, and
    100,000 texts python benchmarks/audit.py --only large                    # 20 million rows x 20
    columns of Parquet

Every tool runs in a process of its own over the same files; CPU seconds (user + system, imports
included) and peak memory are what the kernel counted for that process. Deepchecks and Evidently are
not installed beside Sawbones: `--peers` is a Python with them. Planted: 1 % of the test rows are
training rows; one feature gives the label with an AUC of about 0.974; two features moved. A second
pair of files has an id and a date in every row, for the checks that need one (their shared rows
share these too).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = 500_000
TEXTS = 100_000
LARGE_ROWS = 20_000_000
LABEL, LEAK, MOVED = "y", "n5", ("n7", "c1")


def write_tables(folder: Path, rows: int = ROWS, keyed: bool = False) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    name = "keyed_{}.parquet" if keyed else "{}.parquet"

    def part(count: int, late: bool) -> dict[str, Any]:
        y = (rng.random(count) < 0.3).astype("int64")
        columns: dict[str, Any] = {
            f"n{i}": rng.normal(size=count) + 0.2 * y * (i % 3) for i in range(12)
        }
        columns[LEAK] = y + rng.normal(0, 0.364, count)  # AUC = Phi(1 / (0.364 sqrt 2)) = 0.974
        columns |= {f"i{i}": rng.integers(0, 100 * (i + 1), count) for i in range(3)}
        columns |= {
            f"c{i}": rng.choice(["red", "green", "blue", "grey", "black"], count) for i in range(3)
        }
        columns["amount"] = rng.lognormal(3, 1, count)
        columns[LABEL] = y
        if late:
            columns[MOVED[0]] = columns[MOVED[0]] + 0.4
            columns[MOVED[1]] = np.where(rng.random(count) < 0.3, "red", columns[MOVED[1]])
        if keyed:  # in place of two columns, so that there are 20 again
            del columns["n11"], columns["i2"]
            columns["user"] = np.arange(count) + late * count
            start = np.datetime64("2026-01-01" if late else "2025-01-01", "s")
            columns["at"] = start + rng.integers(0, 365 * 86400, count).astype("timedelta64[s]")
        return columns

    train, test = pa.table(part(rows, False)), part(rows, True)
    shared = rng.choice(rows, rows // 100, replace=False)
    kept = pa.table({name: values[: rows - len(shared)] for name, values in test.items()})
    pq.write_table(train, folder / name.format("train"), row_group_size=100_000)
    pq.write_table(
        pa.concat_tables([kept, train.take(pa.array(shared))]),
        folder / name.format("test"),
        row_group_size=100_000,
    )


def write_texts(folder: Path, count: int = TEXTS) -> None:
    """Random texts of 40 to 160 words; every tenth is another one with some words changed. The
    truth is exact.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    words = np.array(
        [
            "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(2, 10)))
            for _ in range(20_000)
        ]
    )
    first = int(count * 0.9)
    rows = [words[rng.integers(0, len(words), rng.integers(40, 160))] for _ in range(first)]
    sources = rng.integers(0, first, count - first)
    truth = []
    for number, source in enumerate(sources):
        copy = rows[source].copy()
        copy[rng.integers(0, len(copy), rng.integers(0, 5))] = rng.choice(words)
        rows.append(copy)
        a, b = runs(" ".join(rows[source])), runs(" ".join(copy))
        if len(a & b) >= 0.8 * len(a | b):
            truth.append([int(source), first + number])
    pq.write_table(pa.table({"body": [" ".join(row) for row in rows]}), folder / "texts.parquet")
    (folder / "truth.json").write_text(json.dumps(truth))


def runs(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + 3]) for i in range(len(words) - 2)}


def write_large(folder: Path, rows: int = LARGE_ROWS) -> None:
    """Four fifths for training, one fifth for testing, 20 columns, in blocks that need little
    memory.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2)
    block = 500_000
    first = None
    for name, count in (("train", rows * 4 // 5), ("test", rows // 5)):
        writer = None
        for _ in range(count // block):
            y = (rng.random(block) < 0.3).astype("int8")
            columns: dict[str, Any] = {
                f"n{i}": (rng.normal(size=block) + 0.2 * y).astype("float32") for i in range(13)
            }
            columns |= {f"i{i}": rng.integers(0, 1000, block).astype("int32") for i in range(3)}
            columns |= {
                f"c{i}": pa.array(rng.choice(["red", "green", "blue"], block)).dictionary_encode()
                for i in range(3)
            }
            columns[LABEL] = y
            table = pa.table(columns)
            if first is None:
                first = table.slice(0, block // 50)
            if name == "test":
                table = pa.concat_tables([table.slice(0, block - first.num_rows), first])
            writer = writer or pq.ParquetWriter(folder / f"large_{name}.parquet", table.schema)
            writer.write_table(table, row_group_size=250_000)
        if writer is not None:
            writer.close()


def child_leaks(folder: Path) -> dict[str, Any]:
    from sawbones import audit

    report = audit.leaks(str(folder / "train.parquet"), str(folder / "test.parquet"), label=LABEL)
    return {"found": [f"{f.fault}: {f.title}" for f in report.findings]}


def child_shift(folder: Path) -> dict[str, Any]:
    from sawbones import audit

    report = audit.shift(str(folder / "train.parquet"), str(folder / "test.parquet"))
    return {"found": [f"{f.fault}: {f.title}" for f in report.findings]}


def child_large(folder: Path) -> dict[str, Any]:
    from sawbones import audit

    files = str(folder / "large_train.parquet"), str(folder / "large_test.parquet")
    found = []
    for report in (audit.leaks(*files, label=LABEL), audit.shift(*files, label=LABEL)):
        found += [f"{f.fault}: {f.title}" for f in report.findings]
        found += [
            f"could not look: {b.why}" for b in report.could_not_look if "itself failed" in b.why
        ]
    return {"found": found}


def child_leaks_keyed(folder: Path) -> dict[str, Any]:
    from sawbones import audit

    files = str(folder / "keyed_train.parquet"), str(folder / "keyed_test.parquet")
    report = audit.leaks(*files, label=LABEL, group="user", time="at", model=False)
    return {"found": [f"{f.fault}: {f.title}" for f in report.findings]}


def child_deepchecks(folder: Path) -> dict[str, Any]:
    return deepchecks(folder, "{}.parquet", {}, ())


def child_deepchecks_keyed(folder: Path) -> dict[str, Any]:
    from deepchecks.tabular import checks

    more = (
        checks.IndexTrainTestLeakage().add_condition_ratio_less_or_equal(),
        checks.DateTrainTestLeakageDuplicates().add_condition_leakage_ratio_less_or_equal(),
        checks.DateTrainTestLeakageOverlap().add_condition_leakage_ratio_less_or_equal(),
    )
    return deepchecks(
        folder, "keyed_{}.parquet", {"index_name": "user", "datetime_name": "at"}, more
    )


def deepchecks_plain(train: Any, test: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    from deepchecks.tabular import checks

    duplicates = checks.DataDuplicates().add_condition_ratio_less_or_equal()
    conflicts = checks.ConflictingLabels().add_condition_ratio_of_conflicting_labels_less_or_equal()
    change = checks.FeatureLabelCorrelationChange()
    change.add_condition_feature_pps_difference_less_than().add_condition_feature_pps_in_train_less_than()
    return [
        (
            checks.TrainTestSamplesMix().add_condition_duplicates_ratio_less_or_equal(),
            (train, test),
        ),
        (checks.FeatureLabelCorrelation().add_condition_feature_pps_less_than(), (train,)),
        (change, (train, test)),
        *((check, (part,)) for check in (duplicates, conflicts) for part in (train, test)),
    ]


def deepchecks(
    folder: Path, name: str, named: dict[str, str], more: tuple[Any, ...]
) -> dict[str, Any]:
    """The checks that match `audit leaks`, or `more` alone; default settings and conditions; CPU
    seconds of each.
    """
    import warnings

    warnings.filterwarnings("ignore")
    import pandas as pd
    from deepchecks.tabular import Dataset

    cpu = {"start, imports": time.process_time()}
    began = time.process_time()
    train, test = (
        Dataset(
            pd.read_parquet(folder / name.format(part)),
            label=LABEL,
            cat_features=["c0", "c1", "c2"],
            **named,
        )
        for part in ("train", "test")
    )
    cpu["reading the files"] = time.process_time() - began
    wanted = [(check, (train, test)) for check in more] or deepchecks_plain(train, test)
    found = []
    for check, parts in wanted:
        began = time.process_time()
        result = check.run(*parts)
        kind = type(check).__name__
        cpu[kind] = cpu.get(kind, 0.0) + time.process_time() - began
        found += [f"{kind}: {c.details}" for c in result.conditions_results if not c.is_pass()]
    return {"found": found, "cpu": cpu}


def child_evidently(folder: Path) -> dict[str, Any]:
    import warnings

    warnings.filterwarnings("ignore")
    import pandas as pd
    from evidently import DataDefinition, Dataset, Report
    from evidently.presets import DataDriftPreset

    frames = [pd.read_parquet(folder / f"{name}.parquet") for name in ("train", "test")]
    categories = ["c0", "c1", "c2", LABEL]
    definition = DataDefinition(
        numerical_columns=[n for n in frames[0] if n not in categories],
        categorical_columns=categories,
    )
    reference, current = (Dataset.from_pandas(frame, definition) for frame in frames)
    said = Report([DataDriftPreset()]).run(current, reference).dict()
    return {
        "found": [
            m["metric_name"]
            for m in said["metrics"]
            if "ValueDrift" in str(m["metric_name"]) and float(m["value"]) > 0.1
        ]
    }


def child_near(folder: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from sawbones.audits.minhash import TextIndex, blocks, joined, shingles

    texts = pq.read_table(folder / "texts.parquet").column("body").combine_chunks()
    index = TextIndex(joined([shingles(text, offsets) for _, text, offsets in blocks(texts)]))
    later, earlier, _ = index.within(0.8)
    return {"pairs": list(zip(earlier.tolist(), later.tolist(), strict=True))}


def child_datasketch(folder: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq
    from datasketch import MinHash, MinHashLSH

    texts = pq.read_table(folder / "texts.parquet").column("body").to_pylist()
    index = MinHashLSH(threshold=0.8, num_perm=128)
    found = []
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([run.encode() for run in runs(text)])
        found += [(int(other), number) for other in index.query(sketch)]
        index.insert(str(number), sketch)
    return {"pairs": found}


CHILDREN = {
    name.removeprefix("child_"): function
    for name, function in list(globals().items())
    if name.startswith("child_")
}


def measured(python: str, name: str, folder: Path) -> dict[str, Any]:
    """Runs one child and asks the kernel what it used."""
    out = folder / f"{name}.json"
    out.unlink(missing_ok=True)
    began = time.monotonic()
    process = subprocess.Popen(
        [python, __file__, "--child", name, "--folder", str(folder)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} ended with status {process.returncode}")
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - began,
        **json.loads(out.read_text()),
    }


def peak_mb() -> float:
    """Of this program since it was started; the kernel's usage record would count the parent's
    pages from before the exec too.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def judged_pairs(pairs: list[list[int]], folder: Path) -> tuple[float, int]:
    """(recall of the planted pairs at Jaccard 0.8, reported pairs that are not that similar)."""
    import pyarrow.parquet as pq

    truth = {tuple(pair) for pair in json.loads((folder / "truth.json").read_text())}
    texts = pq.read_table(folder / "texts.parquet").column("body").to_pylist()
    found = {(min(a, b), max(a, b)) for a, b in pairs}
    wrong = 0
    for a, b in found:
        one, two = runs(texts[a]), runs(texts[b])
        wrong += len(one & two) < 0.8 * len(one | two)
    return len(truth & found) / max(1, len(truth)), wrong


def row(
    tool: str, result: dict[str, Any], base: dict[str, Any] | None = None, compared: bool = True
) -> str:
    against = (
        f"{result['cpu_s'] / base['cpu_s']:.1f} x | {result['peak_mb'] / base['peak_mb']:.1f} x"
        if base
        else "1 | 1"
    )
    against = against if compared else "- | -"
    return (
        f"| {tool} | {result['cpu_s']:.1f} | {result['peak_mb']:.0f} | {result['wall_s']:.1f} "
        f"| {against} |"
    )


# check of Deepchecks -> what it is matched by in `audit leaks`
MATCHES = {
    "TrainTestSamplesMix": "contamination: rows of the test part that are in the training part",
    "FeatureLabelCorrelation": "target: one feature against the label",
    "FeatureLabelCorrelationChange": (
        "target: bins ranked on the training part, measured on the test part"
    ),
    "DataDuplicates": "doubled rows, in both parts",
    "ConflictingLabels": "equal features with unequal labels, in both parts",
    "IndexTrainTestLeakage": "group (`--group`)",
    "DateTrainTestLeakageDuplicates": "temporal (`--time`)",
    "DateTrainTestLeakageOverlap": "temporal (`--time`)",
}


def tables_section(folder: Path, peers: str | None) -> list[str]:
    write_tables(folder)
    write_tables(folder, keyed=True)
    lines = [
        "## 500,000 + 500,000 rows, 20 columns",
        "",
        "| tool | CPU s | peak MB | wall s | CPU against Sawbones | memory |",
        "|---|---|---|---|---|---|",
    ]
    leaks, shift = (
        measured(sys.executable, "leaks", folder),
        measured(sys.executable, "shift", folder),
    )
    keyed = measured(sys.executable, "leaks_keyed", folder)
    results = {
        "`audit leaks`": (leaks, None),
        "`audit leaks`, with id and date": (keyed, None),
        "`audit shift`": (shift, None),
    }
    theirs: dict[str, dict[str, Any]] = {}
    if peers:
        theirs = {
            name: measured(peers, name, folder)
            for name in ("deepchecks", "deepchecks_keyed", "evidently")
        }
        results["Deepchecks, the matching checks"] = (theirs["deepchecks"], leaks)
        results["Deepchecks, its checks of id and date alone"] = (theirs["deepchecks_keyed"], None)
        results["Evidently, data drift preset"] = (theirs["evidently"], shift)
    # Three checks of one tool are no match for a whole audit of the other: their cost is shown, and
    # no ratio made of it.
    lines += [
        row(tool, result, base, "alone" not in tool) for tool, (result, base) in results.items()
    ]
    if theirs:
        first, second = theirs["deepchecks"]["cpu"], theirs["deepchecks_keyed"]["cpu"]
        lines += ["", "| Deepchecks | CPU s | in `audit leaks` |", "|---|---|---|"]
        for name, seconds in {**second, **first}.items():
            lines.append(f"| {name} | {seconds:.1f} | {MATCHES.get(name, '')} |")
    for tool, (result, _) in results.items():
        lines += ["", f"{tool} found: " + ("; ".join(result["found"]) or "nothing") + "."]
    return [*lines, ""]


def texts_section(folder: Path) -> list[str]:
    write_texts(folder)
    near, other = (
        measured(sys.executable, "near", folder),
        measured(sys.executable, "datasketch", folder),
    )
    lines = [
        f"## Near-duplicates of {TEXTS:,} texts",
        "",
        "| tool | CPU s | peak MB | wall s | CPU against Sawbones | memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        row("Sawbones", near),
        row("datasketch, 128 permutations, threshold 0.8", other, near),
        "",
    ]
    for tool, result in (("Sawbones", near), ("datasketch", other)):
        recall, wrong = judged_pairs(result["pairs"], folder)
        told = f"{wrong:,} of {len(result['pairs']):,} reported pairs are less similar"
        lines.append(f"{tool}: recall {recall:.4f} at Jaccard 0.8 or more; {told}.")
    return [*lines, ""]


def large_section(folder: Path) -> list[str]:
    write_large(folder)
    size = sum(path.stat().st_size for path in folder.glob("large_*.parquet")) / 1e9
    result = measured(sys.executable, "large", folder)
    return [
        (
            f"## {LARGE_ROWS:,} rows, 20 columns, {size:.1f} GB of Parquet: `audit leaks` and "
            "`audit shift`"
        ),
        "",
        "| CPU s | peak MB | wall s |",
        "|---|---|---|",
        f"| {result['cpu_s']:.0f} | {result['peak_mb']:.0f} | {result['wall_s']:.0f} |",
        "",
        "Found: " + ("; ".join(result["found"]) or "nothing") + ".",
        "",
    ]


def setting() -> str:
    from importlib.metadata import version

    names = ("duckdb", "ibis-framework", "pyarrow", "numpy", "scikit-learn", "datasketch")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    ).stdout.strip()
    load = f"{os.getloadavg()[0]:.1f}"
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    machine = f"{os.cpu_count()} cores, load average {load} before the run"
    return f"Commit {commit}, Python {platform.python_version()}, {versions}; {machine}."


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--peers", metavar="PYTHON", help="a Python that has deepchecks and evidently")
    p.add_argument(
        "--only",
        choices=("tables", "texts", "large"),
        action="append",
        help="only this part (may be repeated)",
    )
    p.add_argument(
        "--folder", type=Path, help="where the data is written (default: a temporary folder)"
    )
    p.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    given = p.parse_args()
    if given.child:
        answer = CHILDREN[given.child](given.folder) | {"peak_mb": peak_mb()}
        (given.folder / f"{given.child}.json").write_text(json.dumps(answer))
        raise SystemExit
    print(f"# Data audits, CPU\n\n{setting()}\n", flush=True)
    place = given.folder or Path(tempfile.mkdtemp(prefix="audit-bench-"))
    place.mkdir(parents=True, exist_ok=True)
    try:
        sections = {
            "tables": lambda: tables_section(place, given.peers),
            "texts": lambda: texts_section(place),
        }
        for part in given.only or ("tables", "texts", "large"):
            print("\n".join(sections.get(part, lambda: large_section(place))()), flush=True)
    finally:
        if given.folder is None:
            shutil.rmtree(place, ignore_errors=True)
