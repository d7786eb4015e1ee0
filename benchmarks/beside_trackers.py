"""One broken run in TensorBoard, Trackio, MLflow, W&B (offline) and here: what each weighs, how soon it
draws a curve, and what it says.

    python benchmarks/beside_trackers.py --environments build/beside --out benchmarks/results/FILE.md

The run is examples/reviews.py, which has two faults and curves that look fine; each tracker gets the
lines that its users would add. Packages are installed into one environment each, on top of a shared
one that holds torch and NumPy alone: this needs an index of packages, everything after it no network.
The pages are served on 127.0.0.1 and opened in Chromium with an empty cache. Times depend on the
machine, and the load is written beside them; sizes do not. Look at each picture before it is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 1200, 1160  # pixels
BROWSER = "/usr/bin/chromium"
# Names of other hosts lead nowhere: what a page asks of them is counted and not answered.
FLAGS = (
    "--no-sandbox",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
SERVED_WITHIN = (
    300  # seconds until a server answers and its page shows the curve, on a busy machine
)
RUNS = 3  # of the script under each, for its CPU seconds
LAST = str(RUNS - 1)  # the folder of the run that is shown
SETTLED = 3  # seconds after the first curve, for the rest of the page and its picture
# What would name one of the two faults, or its line.
SAID = re.compile(r"softmax|logits|train-in-eval|evaluation mode|\beval\(\)|dropout", re.IGNORECASE)

# What the user adds to the script, after the line that stands before the colon.
CALLS = {
    "import torch\n": "{header}\n",
    "            self.algo.step()\n": '            log({"train/loss": error.item()})\n',
    '{fitting.accuracy(words, good):.0%} right")\n': (
        '        log({"unseen/accuracy": fitting.accuracy(words, good)})\n'
        "        weights(fitting.net)\n"
    ),
    "    fitting = Fitting([review(rng) for _ in range(480)])\n": "    watch(fitting.net)\n",
    'if __name__ == "__main__":\n    main()\n': "    finish()\n",
}
COUNTED = """
step = 0
def log(values):
    global step
    step += "train/loss" in values
    keep(values, step)
"""
# Each defines keep, watch, weights and finish with the calls that its own documentation shows.
HEADERS = {
    "TensorBoard": """
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter("logs/reviews")
def keep(values, step):
    for name, value in values.items():
        writer.add_scalar(name, value, step)
def weights(net):
    for name, parameter in net.named_parameters():
        writer.add_histogram(f"weights/{name}", parameter, step)
        writer.add_histogram(f"weights/{name}.grad", parameter.grad, step)
def watch(net): pass
finish = writer.close
""",
    "Trackio": """
import trackio
trackio.init(project="reviews", config={"rate": 5e-3, "epochs": 8})
keep, finish = trackio.log, trackio.finish
def weights(net):
    log({f"weights/{n}": trackio.Histogram(p.detach().numpy()) for n, p in net.named_parameters()})
def watch(net): pass
""",
    "MLflow": """
import mlflow
mlflow.set_experiment("reviews")
mlflow.start_run(run_name="reviews")
mlflow.log_params({"rate": 5e-3, "epochs": 8})
keep, finish = mlflow.log_metrics, mlflow.end_run
def weights(net): pass
def watch(net): pass
""",
    "W&B": """
import wandb
wandb.init(project="reviews", config={"rate": 5e-3, "epochs": 8})
keep, finish = wandb.log, wandb.finish
def weights(net): pass
def watch(net):
    wandb.watch(net, log="all", log_freq=10)
""",
}
PACKAGES = {"TensorBoard": "tensorboard", "Trackio": "trackio", "MLflow": "mlflow", "W&B": "wandb"}
HERE, BARE = "Sawbones", "bare"
PICTURED = tuple(f"beside-{name}" for name in ("tensorboard", "trackio", "mlflow", "sawbones"))
WANDB_CONTENT = """
import collections, pathlib, sys
from sawbones.integrations.logs.wandb_log import records
(file,) = pathlib.Path(sys.argv[1]).rglob("run-*.wandb")
kinds, names = collections.Counter(), collections.Counter()
for record in records(file):
    kinds[record.WhichOneof("record_type")] += 1
    for item in record.history.item:
        name = item.key or item.nested_key[0]
        names[name.split("/")[0] if "parameters" in name or "gradients" in name else name] += 1
print("records:", ", ".join(f"{name} {n}" for name, n in sorted(kinds.items())))
print("history:", ", ".join(f"{name} {n}" for name, n in sorted(names.items())))
print("alerts:", kinds["alert"])
"""

COLUMNS = (
    "in; version; install, MB; packages; CPU of the script, s; left behind, kB; server answers, s; "
    "first curve, server just started, s; first curve, s; page as sent, kB; unpacked, kB; "
    "requests; other hosts asked; fault named on it"
)
EXPLAINED = f"""\
Install: what the package and what it needs weigh beyond torch and NumPy, with bytecode, before it
has run. CPU: of the script and what it starts, median of {RUNS}; bare is the script as it is. First
curve: from opening the page to the first line drawn, empty cache, median and range. Page: up to
that moment. Fault: words for either fault in the text of the whole page."""

# A line across the plot: a path or polyline with many points, or coloured pixels in many columns of
# a canvas. The same question for every page; icons and axes are too small or too simple for it.
DRAWN = """() => {
  const inside = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
    e.shadowRoot ? [e, ...inside(e.shadowRoot)] : [e]);
  const seen = (e) => { const b = e.getBoundingClientRect();
    return b.width > 100 && b.top < innerHeight && b.bottom > 0 && b.left < innerWidth; };
  for (const e of inside(document)) {
    const name = e.localName;
    if ((name === "path" || name === "polyline") && seen(e)
        && (e.getAttribute("d") || e.getAttribute("points") || "").length > 150)
      return performance.now();
    if (name !== "canvas" || !seen(e) || !e.width || !e.height) continue;
    const copy = Object.assign(document.createElement("canvas"), { width: e.width, height: e.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(e, 0, 0);
    const { data } = context.getImageData(0, 0, e.width, e.height), columns = new Set();
    for (let i = 0; i < data.length; i += 4) {
      const colour = data.slice(i, i + 3);
      if (data[i + 3] > 60 && Math.max(...colour) - Math.min(...colour) > 20)
        columns.add((i / 4) % e.width);
    }
    if (columns.size > e.width / 3) return performance.now();
  }
  return false;
}"""


@dataclass
class Measured:
    version: str = ""
    install_mb: float = 0.0
    num_packages: int = 0
    script_cpu_s: float = 0.0  # of the script and what it starts
    kept_kb: float = 0.0  # what the run leaves behind
    server_s: float = 0.0  # from the command to the first answer
    cold_s: float = 0.0  # from opening the page to the first curve, server just started
    drawn_s: list[float] = field(default_factory=list)  # the same afterwards
    found_s: list[float] = field(default_factory=list)  # to the first finding, here
    sent_kb: float = 0.0  # up to the first curve, as sent
    unpacked_kb: float = 0.0
    num_requests: int = 0
    elsewhere: list[str] = field(default_factory=list)  # other hosts that the page asked for
    said: list[str] = field(default_factory=list)  # words for a fault on the page


# ----- environments


def called(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stdout[-1000:]}{done.stderr[-3000:]}")
    return done


def size_mb(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def packages_of(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def distributions(environment: Path) -> dict[str, str]:
    names = (path.name for path in packages_of(environment).glob("*.dist-info"))
    return dict(name.removesuffix(".dist-info").rsplit("-", 1) for name in names)


def installed(folder: Path, name: str, wanted: str) -> tuple[Path, float, int]:
    """An environment with a package and what it needs beyond torch and NumPy: its programs, its
    megabytes before anything of it has run, and how many packages it is."""
    environment, note = folder / name, folder / f"{name}.json"
    if not note.exists():
        called(sys.executable, "-m", "venv", environment)
        inside = packages_of(environment)
        empty_mb, num_empty = size_mb(inside), len(distributions(environment))
        if name != "before":
            before = packages_of(folder / "before")
            (inside / "before.pth").write_text(f"{before}\n", encoding="utf-8")
        pip = (environment / "bin" / "python", "-m", "pip", "install", "--quiet")
        called(*pip, "-c", ROOT / "constraints.txt", *wanted.split())
        found = [size_mb(inside) - empty_mb, len(distributions(environment)) - num_empty]
        note.write_text(json.dumps(found), encoding="utf-8")
    install_mb, num_packages = json.loads(note.read_text(encoding="utf-8"))
    return environment / "bin", install_mb, num_packages


# ----- runs


def script(tracker: str) -> str:
    """examples/reviews.py with the lines that a user of the tracker adds."""
    text = (ROOT / "examples" / "reviews.py").read_text(encoding="utf-8")
    for line, added in CALLS.items():
        if text.count(line) != 1:
            raise SystemExit(f"examples/reviews.py has changed: {line!r} is not there once")
        text = text.replace(line, line + added.replace("{header}", HEADERS[tracker] + COUNTED))
    return text


def environment_of(folder: Path) -> dict[str, str]:
    """Everything stays in the folder, and nobody is told."""
    own = {
        "OMP_NUM_THREADS": "1",
        "BROWSER": "true",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        "TRACKIO_DIR": str(folder / "trackio"),
        "WANDB_DIR": str(folder),
        "WANDB_MODE": "offline",
    }
    return {**os.environ, **own}


def recorded(tracker: str, programs: Path, folder: Path) -> float:
    """CPU seconds of the script, under the tracker, watched or bare, and of what it starts."""
    plain = tracker in (HERE, BARE)
    text = (ROOT / "examples" / "reviews.py").read_text("utf-8") if plain else script(tracker)
    (folder / "train.py").write_text(text, encoding="utf-8")
    watched = ("-m", "sawbones", "run", "--quiet", "--page", "--out", "run")
    command = (programs / "python", *(watched if tracker == HERE else ()), "train.py")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    called(*command, cwd=folder, env=environment_of(folder))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def stored_by_wandb(folder: Path, environments: Path) -> str:
    """What the offline run holds: each kind of record, each family of names in its history."""
    command = [environments / "wandb" / "bin" / "python", "-c", WANDB_CONTENT, folder]
    return called(*command, env={**environment_of(folder), "PYTHONPATH": str(ROOT / "src")}).stdout


def answered(environments: Path, folder: Path, command: str, *more: Path) -> tuple[str, str]:
    """What a sawbones command prints, and how long it takes."""
    paths = os.pathsep.join(map(str, (ROOT / "src", *more)))
    own = {**environment_of(folder), "PYTHONPATH": paths, "COLUMNS": "100"}
    start = time.perf_counter()
    done = subprocess.run(
        [environments / "sawbones" / "bin" / "python", "-m", "sawbones", *command.split()],
        cwd=folder,
        env=own,
        capture_output=True,
        text=True,
    )
    told = f"{time.perf_counter() - start:.1f} s, exit status {done.returncode}"
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines()), told


# ----- pages


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def server(tracker: str, programs: Path, port: int) -> list[object]:
    if tracker == "TensorBoard":
        options = ("--logdir", "logs", "--host", "127.0.0.1", "--port", port)
        return [programs / "tensorboard", *options]
    if tracker == "MLflow":
        return [programs / "mlflow", "ui", "--host", "127.0.0.1", "--port", port, "--workers", 1]
    if tracker == "Trackio":
        return [programs / "trackio", "show", "--project", "reviews", "--host", "127.0.0.1"]
    return [programs / "python", "-m", "sawbones", "page", "--port", port, "run"]


def address(tracker: str, port: int, printed: Path) -> str:
    """The page that shows the curves of the run, in one step from what the server prints."""
    if tracker == HERE:
        found = re.search(r"http://\S+", printed.read_text(encoding="utf-8"))
        return found[0] if found else ""
    if tracker == "MLflow":
        store = f"http://127.0.0.1:{port}/api/2.0/mlflow/runs/search"
        wanted = json.dumps({"experiment_ids": ["1"], "max_results": 1}).encode()
        asked = urllib.request.Request(store, wanted, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            run = json.load(answer)["runs"][0]["info"]["run_id"]
        way = f"experiments/1/runs/{run}/model-metrics?workflowType=machine_learning"
        return f"http://127.0.0.1:{port}/#/{way}"
    return f"http://127.0.0.1:{port}/" + ("?project=reviews" if tracker == "Trackio" else "")


def answers(link: str) -> bool:
    try:
        with urllib.request.urlopen(link, timeout=30) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


@contextmanager
def served(tracker: str, programs: Path, folder: Path) -> Iterator[tuple[str, float]]:
    """The link, and the seconds from the command to the first answer."""
    port, printed = free_port(), folder / "server.log"
    own = {**environment_of(folder), "GRADIO_SERVER_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    root, start = f"http://127.0.0.1:{port}/", time.perf_counter()
    with printed.open("w", encoding="utf-8") as log:
        command = [str(word) for word in server(tracker, programs, port)]
        process = subprocess.Popen(command, cwd=folder, env=own, stdout=log, stderr=log)
    try:
        while not answers(address(HERE, port, printed) if tracker == HERE else root):
            if process.poll() is not None or time.perf_counter() - start > SERVED_WITHIN:
                raise SystemExit(f"{tracker} does not answer: {printed.read_text()[-2000:]}")
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        yield address(tracker, port, printed), seconds
    finally:
        process.terminate()
        process.wait(60)


class Traffic:
    """What a page is sent, counted by the browser as it comes over the wire and as unpacked."""

    def __init__(self, page: Any) -> None:
        self.sent: dict[str, float] = {}
        self.unpacked, self.num_requests = 0, 0
        self.elsewhere: set[str] = set()
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._asked)
        session.on("Network.dataReceived", self._part)
        session.on("Network.loadingFinished", self._whole)

    def _asked(self, event: dict[str, Any]) -> None:
        host = re.match(r"(?:https?|wss?)://([^/:]+)", event["request"]["url"])
        self.num_requests += host is not None
        if host and host[1] != "127.0.0.1":
            self.elsewhere.add(host[1])

    def _part(self, event: dict[str, Any]) -> None:
        self.unpacked += event["dataLength"]
        name = event["requestId"]
        self.sent[name] = self.sent.get(name, 0) + event["encodedDataLength"]

    def _whole(self, event: dict[str, Any]) -> None:
        self.sent[event["requestId"]] = event["encodedDataLength"]  # with its headers


def opened(browser: Any, link: str, measured: Measured, picture: Path | None) -> None:
    """Once, with an empty cache. The last one is also read and photographed."""
    size = {"width": WIDTH, "height": HEIGHT}
    context = browser.new_context(viewport=size, reduced_motion="reduce", color_scheme="light")
    page = context.new_page()
    traffic = Traffic(page)
    page.goto(link, wait_until="commit", timeout=SERVED_WITHIN * 1000)
    seen = page.wait_for_function(DRAWN, polling=50, timeout=SERVED_WITHIN * 1000)
    measured.drawn_s.append(seen.json_value() / 1000)
    measured.sent_kb = sum(traffic.sent.values()) / 1000
    measured.unpacked_kb, measured.num_requests = traffic.unpacked / 1000, traffic.num_requests
    if page.title().endswith(HERE):
        page.wait_for_selector("#findings .found")
        measured.found_s.append(page.evaluate("performance.now()") / 1000)
    if picture:
        tidied(page)
        page.wait_for_timeout(SETTLED * 1000)
        measured.elsewhere = sorted(traffic.elsewhere)
        measured.said = sorted({w.lower() for w in SAID.findall(page.inner_text("body"))})
        page.screenshot(path=picture)
    context.close()


def tidied(page: Any) -> None:
    """MLflow opens with an assistant for language models beside the curves."""
    assistant = page.locator('[data-component-id="mlflow.assistant.chat_panel.close"]')
    if assistant.count():
        assistant.first.click()


# ----- the whole


def measured_in(given: argparse.Namespace, tracker: str, folder: Path, browser: Any) -> Measured:
    name = PACKAGES.get(tracker, "sawbones")
    wanted = str(ROOT) if tracker in (HERE, BARE) else name
    programs, install_mb, num_packages = installed(given.environments, name, wanted)
    found = Measured(install_mb=install_mb, num_packages=num_packages)
    found.version = distributions(programs.parent)[name]
    spent = []
    for number in range(RUNS):
        last = folder / str(number)
        last.mkdir(parents=True)
        spent.append(recorded(tracker, programs, last))
    folder = last
    found.script_cpu_s = statistics.median(spent)
    found.kept_kb = 1000 * size_mb(folder) - (folder / "train.py").stat().st_size / 1000
    if tracker in (BARE, "W&B"):  # nothing to serve here
        return found
    with served(tracker, programs, folder) as (link, found.server_s):
        opened(browser, link, first := Measured(), None)
        (found.cold_s,) = first.drawn_s
        for left in reversed(range(given.rounds)):
            opened(browser, link, found, None if left else given.pictures / f"beside-{name}.png")
    return found


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f}-{max(seconds):.2f})"


def row(tracker: str, found: Measured) -> str:
    cells = [tracker, found.version if tracker != BARE else "-"]
    weight = (f"{found.install_mb:.1f}", str(found.num_packages), f"{found.script_cpu_s:.1f}")
    cells += weight if tracker != BARE else ("-", "-", weight[2])
    cells.append(f"{found.kept_kb:.0f}")
    if not found.drawn_s:
        return f"| {' | '.join([*cells, *['-'] * 8])} |"
    cells += [f"{found.server_s:.1f}", f"{found.cold_s:.2f}", spread(found.drawn_s)]
    cells += [f"{found.sent_kb:.0f}", f"{found.unpacked_kb:.0f}"]
    cells += [str(found.num_requests), ", ".join(found.elsewhere) or "none"]
    cells.append(", ".join(found.said) or "none")
    return f"| {' | '.join(cells)} |"


def report(given: argparse.Namespace, rows: list[str], texts: list[str], load: float) -> str:
    base = distributions(given.environments / "before")
    commit = called("git", "rev-parse", "--short", "HEAD", cwd=ROOT).stdout.strip()
    browser = called(BROWSER, "--version").stdout.split()
    machine = (
        f"Commit {commit}, {time.strftime('%Y-%m-%d')}; Python {platform.python_version()}, torch "
        f"{base['torch']}, {' '.join(browser[:2])}; {os.cpu_count()} cores, load {load:.1f} at the "
        f"start and {os.getloadavg()[0]:.1f} at the end."
    )
    heads = COLUMNS.split("; ")
    table = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *rows]
    command = f"`python benchmarks/beside_trackers.py --rounds {given.rounds}`"
    head = (
        f"# The same broken run in the trackers and here\n\n{command}\n\n{machine}\n\n{EXPLAINED}"
    )
    return "\n".join([head, "", *table, "", *texts, ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "beside")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", help="TensorBoard, Trackio, MLflow, W&B, ...")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pictures", type=Path, default=PICTURES)
    given = parser.parse_args()
    given.environments = given.environments.resolve()
    given.environments.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    load, rows, texts = os.getloadavg()[0], [], []
    installed(given.environments, "before", "torch numpy")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        for tracker in (BARE, *HEADERS, HERE):
            if given.only and tracker not in given.only:
                continue
            folder = Path(place, PACKAGES.get(tracker, tracker))
            found = measured_in(given, tracker, folder, browser)
            rows.append(row(tracker, found))
            print(rows[-1], flush=True)
        browser.close()
        if not given.only:
            texts = [
                f"The first finding stands on the page of Sawbones after {spread(found.found_s)} s.",
                "",
            ]
            texts += said_of(given.environments, Path(place))
            print("\n".join(texts))
    if given.out is not None:
        given.out.write_text(report(given, rows, texts, load), encoding="utf-8")


def said_of(environments: Path, place: Path) -> list[str]:
    """What W&B holds; what Sawbones says of the curves alone, and of the script."""
    board = packages_of(environments / "tensorboard")
    texts = [
        "## What W&B has kept",
        "",
        "```",
        stored_by_wandb(place / "wandb" / LAST, environments).strip(),
    ]
    for head, command, more in (
        (
            "the curves alone",
            f"diagnose --from tensorboard ../../tensorboard/{LAST}/logs/reviews",
            (board,),
        ),
        ("the script", "diagnose train.py", ()),
    ):
        told, took = answered(environments, place / HERE / LAST, command, *more)
        texts += ["```", "", f"## What `sawbones diagnose` says of {head}", ""]
        texts += [f"`sawbones {command}`: {took}.", "", "```", told]
    return [*texts, "```"]


if __name__ == "__main__":
    main()
