"""Capture, replay, shrink: thirty failures, ten thousand damaged bundles, what capturing costs, and
the memory of a large model.

python benchmarks/capture.py failures  [--only GLOB] [--rows FILE]
python benchmarks/capture.py fuzz
python benchmarks/capture.py cost [--rounds N] [--only GLOB]
python benchmarks/capture.py runs [--rounds N]
python benchmarks/capture.py memory
python benchmarks/capture.py page      # benchmarks/results/capture_<hardware>_<yyyymm>.md from the
rows
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ROWS = Path(tempfile.gettempdir()) / "sawbones-capture-rows.jsonl"

# Crashes, NaN and spikes; loaders, plain loops and frameworks; float32 and float16; one rank and
# two.
FAILURES = (
    "data.degenerate-samples/clickstream-packed-lstm",
    "data.degenerate-samples/point-clouds-deep-set",
    "data.degenerate-samples/short-messages-encoder",
    "data.label-out-of-range/land-cover-segmenter",
    "data.label-out-of-range/lightning-birdsong-species",
    "data.label-out-of-range/star-ratings-bag-of-words",
    "data.nonfinite-input/rain-table-plain-loop",
    "data.nonfinite-input/river-gauge-text-gru",
    "data.nonfinite-input/sensor-windows-trainer-class",
    "loop.exploding-gradients/gaussian-head-sgd",
    "loop.exploding-gradients/relu-rnn-adding",
    "loop.loss-spike/hf-trainer-meter-readings",
    "loop.loss-spike/image-shards",
    "loop.loss-spike/sensor-regression",
    "loop.out-of-memory/point-cloud-pairwise",
    "loop.scaler-misuse/mlp-sgd-float16",
    "loop.scaler-skipping/gpt-config-namespace",
    "loop.unused-parameters/ddp-spare-head",
    "loss.unstable-log/annotator-votes-kl",
    "loss.unstable-log/metric-learning-distance",
    "model.mask-dtype/fp16-autocast-cross-attention",
    "model.mask-shape/gpt-tril-buffer-lengths",
    "model.over-masking/left-padded-causal-lm",
    "model.over-masking/particle-graph-attention",
    "model.position-bounds/review-encoder-long-batch",
    "model.unstable-norm/rms-norm-padded-gru",
    "model.unstable-norm/window-instance-norm",
    "optimizer.lr-too-high/mlp-regression-sgd",
    "pipeline.token-out-of-vocab/hf-trainer-commands",
    "pipeline.token-out-of-vocab/word-model-get-batch",
    "lab/data.label-out-of-range",
    "lab/data.nonfinite-input",
    "lab/loop.loss-spike",
    "lab/loss.unstable-log",
    "lab/model.over-masking",
    "lab/model.unstable-norm",
)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def failures(only: str, rows: Path, quick: bool) -> None:
    from sawbones.scoring.cases import corpus_cases, lab_cases

    cases = {case.name: case for case in [*corpus_cases(ROOT / "tests" / "corpus"), *lab_cases()]}
    known = {row["case"] for row in read_rows(rows) if row["what"] == "failure"}
    for name in FAILURES:
        if not fnmatch(name, only) or name in known:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = {"what": "failure", "case": name, **one_failure(cases[name], Path(folder), quick)}
        note(rows, row)


def one_failure(case: Any, folder: Path, quick: bool) -> dict[str, Any]:
    """Captured by `sawbones run`, replayed and shrunk in processes of their own."""
    from sawbones.capture.bundle import read_bundle
    from sawbones.capture.replay import replay
    from sawbones.capture.shrink import shrink
    from sawbones.schema.errors import SawbonesError

    script = (
        str(case.script)
        if case.name.startswith("lab/")
        else shutil.copy(case.script, folder / case.script.name) and case.script.name
    )
    ranks = ["--nproc-per-node", str(case.num_ranks)] if case.num_ranks > 1 else []
    command = [
        sys.executable,
        "-m",
        "sawbones",
        "run",
        "--quiet",
        "--out",
        "run",
        *ranks,
        script,
        *case.argv,
    ]
    subprocess.run(command, cwd=folder, env=environment(), capture_output=True, timeout=400)
    bundles = sorted((folder / "run" / "bundles").glob("*.sawbones"))
    if not bundles:
        return {"captured": False}
    os.chdir(folder)
    bundle = read_bundle(bundles[0])
    row: dict[str, Any] = {
        "captured": True,
        "kind": bundle.failure.kind,
        "text": bundle.failure.text,
        "ranks": bundle.world_size,
    }
    row["megabytes"] = round(bundles[0].stat().st_size / 1e6, 2)
    try:
        found = replay(bundle)
        row |= {
            "same": found.same,
            "way": found.way,
            "replay_s": round(found.seconds, 1),
            "differences": found.differences[:2],
        }
        small = shrink(bundle, folder / "small", seconds=60.0 if quick else 300.0)
        row |= {
            "examples": small.examples,
            "numbers": small.numbers,
            "trials": small.trials,
            "shrink_s": round(small.seconds, 1),
            "script": small.script is not None,
            "why": small.why_no_script,
            "operator": (small.operator or [""])[0][:120],
            "lines": len(small.script.read_text(encoding="utf-8").splitlines())
            if small.script
            else None,
        }
        if not quick:
            row["small_same"] = replay(read_bundle(small.bundle)).same
    except SawbonesError as error:
        row["error"] = str(error)[:300]
    return row


def fuzz(rows: Path, count: int = 10_000) -> None:
    from tests.capture.made import fuzz, write_small_bundle

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = write_small_bundle(folder / "small.sawbones")
        began = time.perf_counter()
        clean, refused = fuzz(bundle, folder, count, seed=1)
        left = sorted(path.name for path in folder.iterdir())
    seconds = round(time.perf_counter() - began, 1)
    note(
        rows,
        {
            "what": "fuzz",
            "bundles": count,
            "clean": clean,
            "refused": refused,
            "left": left,
            "seconds": seconds,
        },
    )


STEP = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[m for _ in range({layers}) for m in (nn.utils.skip_init(nn.Linear, {width}, {width}), nn.GELU())])
for p in model.parameters():
    p.data.fill_(1e-4)
optimizer = torch.optim.{optimizer}(model.parameters(), lr=1e-4)
for step in range({steps}):
    x = torch.randn({batch}, {width})
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open("/proc/self/status") as status:
    print("peak_mb", next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))
"""


def measured(source: str, *flags: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(source, encoding="utf-8")
        watched = [
            sys.executable,
            "-m",
            "sawbones",
            "run",
            "--quiet",
            "--no-deep",
            *flags,
            "train.py",
        ]
        command = [sys.executable, "train.py"] if flags == ("plain",) else watched
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
    return {
        words[0]: float(words[1])
        for line in done.stdout.splitlines()
        if len(words := line.split()) == 2
    }


def cost(rows: Path, rounds: int, only: str) -> None:
    """Bare, watched, and watched with capture: steps of the same training that alternate in one
    process, as overhead.py has it.

    Medians tell what a step costs; the mean also holds the steps on which weights are copied.
    """
    from overhead import SHALLOW, Sawbones, compare, spread

    for name, make, steps in (
        ("6-layer GPT of overhead.py", gpt(), 1),
        ("six linear layers, DataLoader", small(), 20),
    ):
        if not fnmatch(name, only):
            continue
        bare, ways = make(), {key: make() for key in ("null", "watched", "with capture")}
        for key in ("watched", "with capture"):
            watching = Sawbones(SHALLOW)
            ways[key].around = watching.capturing if key == "with capture" else watching
            ways[key].close = watching.close
        compare(bare, ways, rounds, time.process_time, steps=steps, untimed=1)
        row: dict[str, Any] = {
            "what": "cost",
            "case": name,
            "rounds": rounds,
            "bare_ms": spread(bare.times),
        }
        for key, way in ways.items():
            row[key] = {
                "ratio": spread(way.ratios, 4),
                "mean": round(statistics.fmean(way.ratios), 4),
            }
        added = [
            1e3 * (b - a)
            for a, b in zip(ways["watched"].times, ways["with capture"].times, strict=True)
        ]
        row["added_us"] = spread(added, 1)
        note(rows, row)


SHORT_STEPS = """
import json, time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10))
data = TensorDataset(torch.randn(3200, 64), torch.randint(0, 10, (3200,)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
at = [time.perf_counter()]
for epoch in range(30):
    for x, y in DataLoader(data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        at.append(time.perf_counter())
print(json.dumps([1e4 * (b - a) for a, b in zip(at[::100], at[100::100])]))
"""


def runs(rows: Path, rounds: int) -> None:
    """Whole runs of short steps, each in a process of its own, in turn: everything that `sawbones
    run` does by default.
    """
    import numpy as np

    ways: dict[str, tuple[str, ...] | None] = {
        "bare": None,
        "--no-capture --quiet": ("--no-capture", "--quiet"),
        "--quiet": ("--quiet",),
        "default": (),
    }
    times: dict[str, list[list[float]]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, flags in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "train.py").write_text(SHORT_STEPS, encoding="utf-8")
                watched = [] if flags is None else ["-m", "sawbones", "run", *flags]
                command = [sys.executable, *watched, "train.py"]
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment(),
                    capture_output=True,
                    text=True,
                    timeout=600,
                    check=True,
                )
            times[name].append(
                json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))
            )
        print(f"{number + 1} of {rounds}", file=sys.stderr, flush=True)
    row: dict[str, Any] = {"what": "runs", "rounds": rounds, "ways": {}}
    for name, found in times.items():
        early, later = np.array(found)[:, :5], np.array(found)[:, 5:]
        numbers = [*np.percentile(later, [10, 25, 50]), later.mean(), np.median(early.mean(axis=1))]
        row["ways"][name] = [round(float(n)) for n in numbers]
    note(rows, row)


def gpt() -> Callable[[], Any]:
    import torch
    from engine import GPT
    from overhead import Training

    torch.manual_seed(0)
    model, ids = GPT(4096, 128, 6, 256, 8), torch.randint(0, 4096, (8, 129))

    def make() -> Training:
        own = copy.deepcopy(model)
        return Training(
            own, torch.optim.AdamW(own.parameters(), lr=3e-4), lambda m: m(ids[:, :-1], ids[:, 1:])
        )

    return make


def small() -> Callable[[], Any]:
    import torch
    from overhead import Training
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = nn.Sequential(
        *[part for _ in range(5) for part in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10)
    )
    loader = DataLoader(
        TensorDataset(torch.randn(3200, 64), torch.randint(0, 10, (3200,))),
        batch_size=32,
        shuffle=True,
    )

    def make() -> Training:
        own = copy.deepcopy(model)
        batches = (batch for _ in iter(int, 1) for batch in loader)

        def loss_of(m: nn.Module) -> torch.Tensor:
            x, wanted = next(batches)
            return nn.functional.cross_entropy(m(x), wanted)

        return Training(own, torch.optim.AdamW(own.parameters(), lr=1e-3), loss_of)

    return make


def memory(rows: Path) -> None:
    """A model of 1 GB of weights, SGD: the peak with capture against without it, with a failing
    step and with a higher limit.
    """
    source = STEP.format(layers=16, width=4096, batch=4, steps=3, optimizer="SGD")
    failing = source.replace(
        "loss = model(x).square().mean()",
        "loss = model(x).square().mean() * (float('nan') if step == 1 else 1.0)",
    )
    row: dict[str, Any] = {"what": "memory", "weights_mb": 16 * 4096 * 4097 * 4 / 2**20}
    # Told as they come: on a busy machine one of these runs takes minutes, and what was measured
    # must not be lost.
    variants: list[tuple[str, str, tuple[str, ...]]] = [
        ("plain", source, ("plain",)),
        ("without", source, ("--no-capture",)),
        ("with", source, ()),
        ("with_a_failure", failing, ()),
        ("with_a_failure_kept", failing, ("--capture-limit", "1100")),
    ]
    for key, text, flags in variants:
        row[key] = measured(text, *flags)["peak_mb"]
        print(f"{key}: {row[key]:.0f} MB", file=sys.stderr, flush=True)
    note(rows, row)


# rows and the page


def commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        " and changes" if git("status", "--porcelain", "--", "src") else ""
    )


def note(rows: Path, row: dict[str, Any]) -> None:
    row = {**row, "commit": commit()}
    print(json.dumps(row), flush=True)
    with rows.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(rows: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
        if rows.exists()
        else []
    )


def page(rows: Path) -> None:
    import torch

    found = read_rows(rows)
    cases = {row["case"]: row for row in found if row["what"] == "failure"}
    lines = ["# Capture, replay, shrink", ""]
    known = {
        "failure": "failures",
        "fuzz": "fuzz",
        "cost": "cost",
        "runs": "runs",
        "memory": "memory",
    }
    kinds = dict.fromkeys(known[row["what"]] for row in found if row["what"] in known)
    commits = list(
        dict.fromkeys(str(row.get("commit", "unknown")) for row in found if row["what"] != "notes")
    )
    lines += [
        f"Commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}, "
        f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, one thread. "
        "Times of failures are of a machine that was busy with other work.",
        "",
        "`python benchmarks/capture.py WHAT`, with "
        + ", ".join(f"`{what}`" for what in kinds)
        + "; then `page`.",
        "",
        *failure_table(list(cases.values())),
    ]
    for row in found:
        lines += other_row(row)
    hardware = (
        "cpu" if not torch.cuda.is_available() else torch.cuda.get_device_name().split()[-1].lower()
    )
    target = ROOT / "benchmarks" / "results" / f"capture_{hardware}_{time.strftime('%Y%m')}.md"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(target)


def failure_table(tried: list[dict[str, Any]]) -> list[str]:
    rows = [row for row in tried if row["captured"]]
    missed = [row["case"] for row in tried if not row["captured"]]
    same = sum(bool(row.get("same")) for row in rows)
    small = sum(bool(row.get("examples")) and row["examples"][1] <= 2 for row in rows)
    again = [bool(row["small_same"]) for row in rows if "small_same" in row]
    scripts = sum(bool(row.get("script")) for row in rows)
    lines = [
        f"## {len(rows)} failures",
        "",
        f"- {same} replay bit for bit in a new process",
        f"- {small} shrink to at most 2 examples",
        *(
            [
                (
                    f"- {sum(again)} of the {len(again)} shrunk bundles that were replayed "
                    "give the same bits"
                )
            ]
            if again
            else []
        ),
        (
            f"- {scripts} come with a script of under 60 lines that needs only torch and "
            "fails the same way on its own"
        ),
        *([f"- not captured, and not in the table: {', '.join(missed)}"] if missed else []),
        "",
        "| case | failure | replay | way | s | examples | trials | s | script |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        script = (
            f"{row['lines']} lines"
            if row.get("script")
            else (row.get("why") or row.get("error") or "-")
        )
        ranks = f", {row['ranks']} ranks" if row.get("ranks", 1) > 1 else ""
        columns = [
            row["case"],
            f"{row.get('kind')}{ranks}: {row.get('text', '')[:60]}".replace("|", "/").replace(
                "\n", " "
            ),
            "same bits" if row.get("same") else "DIFFERS",
            row.get("way"),
            row.get("replay_s"),
            " -> ".join(map(str, row["examples"])) if row.get("examples") else "-",
            row.get("trials"),
            row.get("shrink_s"),
            script[:80].replace("|", "/"),
        ]
        lines.append(f"| {' | '.join(map(str, columns))} |")
    return [*lines, ""]


def other_row(row: dict[str, Any]) -> list[str]:
    if row["what"] == "fuzz":
        text = (
            f"{row['bundles']} mutated bundles, a third of them sealed again, a third "
            f"with a manifest to match: {row['clean']} "
            f"were refused with a clear error ({row['refused']}) or read; there was no "
            "other error. Left in the folder: "
            f"{', '.join(row['left'])}. {row['seconds']} s."
        )
        return ["## Damaged bundles", "", text, ""]
    if row["what"] == "cost":
        text = (
            f"{row['rounds']} rounds of alternating steps, processor time; ratios to the "
            "bare step: median (middle half), mean. "
            f"Bare step {row['bare_ms']} ms."
        )
        table = ["| | ratio | mean |", "|---|---|---|"]
        table += [
            f"| {key} | {row[key]['ratio']} | {row[key]['mean']} |"
            for key in ("null", "watched", "with capture")
        ]
        text += f" With capture against without it: {row['added_us']} us a step.\n\n" + "\n".join(
            table
        )
        return [f"## Cost of capture, {row['case']}", "", text, ""]
    if row["what"] == "runs":
        return ["## Whole runs of short steps", "", *runs_text(row), ""]
    if row["what"] == "memory":
        text = (
            f"{row['weights_mb']:.0f} MB of weights. Peak of the process: plain "
            f"{row['plain']:.0f} MB, watched without capture "
            f"{row['without']:.0f} MB, with it {row['with']:.0f} MB, with it and a "
            f"failing step {row['with_a_failure']:.0f} MB, "
            "and with a limit that lets the weights into the bundle "
            f"{row['with_a_failure_kept']:.0f} MB."
        )
        return ["## Memory, a model of 1 GB", "", text, ""]
    return (
        ["## Notes", "", *(f"- {line}" for line in row["lines"]), ""]
        if row["what"] == "notes"
        else []
    )


def runs_text(row: dict[str, Any]) -> list[str]:
    lines = [
        (
            f"{row['rounds']} runs of 3,000 steps of about a millisecond for each way, in "
            "turn; microseconds of a step, in brackets"
        ),
        (
            "what is above the bare ones. Blocks of 100 steps from step 500 on: other "
            "programs disturb some, so their lower tenth and"
        ),
        (
            "quarter are given beside their median and mean. The first 500 steps: median over "
            "the runs of their means. Live looks, the"
        ),
        "difference between the last two rows, take a second of a run or a fiftieth at most.",
        "",
        "| | tenth | quarter | median | mean | first 500 steps |",
        "|---|---|---|---|---|---|",
    ]
    for name, numbers in row["ways"].items():
        above = [n - b for n, b in zip(numbers, row["ways"]["bare"], strict=True)]
        cells = [
            str(n) if name == "bare" else f"{n} ({more:+d})"
            for n, more in zip(numbers, above, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("what", choices=["failures", "fuzz", "cost", "runs", "memory", "page"])
    p.add_argument("--only", default="*", metavar="GLOB")
    p.add_argument("--rows", type=Path, default=ROWS, metavar="FILE")
    p.add_argument(
        "--quick",
        action="store_true",
        help="a minute for each search, and no replay of the shrunk bundle",
    )
    p.add_argument(
        "--rounds",
        type=int,
        default=200,
        metavar="N",
        help="of the cost (default 200) or of whole runs (10 do)",
    )
    given = p.parse_args()
    if given.what == "failures":
        failures(given.only, given.rows, given.quick)
    elif given.what == "cost":
        cost(given.rows, given.rounds, given.only)
    elif given.what == "runs":
        runs(given.rows, given.rounds)
    else:
        {"fuzz": fuzz, "memory": memory, "page": page}[given.what](given.rows)


if __name__ == "__main__":
    main()
