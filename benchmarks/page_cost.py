"""Does the live page cost the training process anything? The same training watched without a page,
with a page and three clients that read all of it, and without one again, which is the null.

    python benchmarks/page_cost.py --rounds 6 --out benchmarks/results/FILE.md

CPU seconds of the training process alone, as it counts them itself; the order changes from round to
round. Only an idle machine gives numbers to keep; the load is written beside them.
"""

from __future__ import annotations

import argparse
import http.client
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

CLIENTS = 3
KINDS = ("without", "page", "without again")
TRAINING = """
import sys, time, torch
from torch import nn
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
model = nn.Sequential(nn.Embedding(100, 128), nn.TransformerEncoder(layer, 3), nn.Linear(128, 100))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for step in range(int(sys.argv[1])):
    ids = torch.randint(0, 100, (8, 64))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
print("CPU", time.process_time())
"""


def listen(link: str, told: list[int]) -> None:
    """Reads the stream as a browser does, until the server ends it."""
    address = urlsplit(link)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        connection.request("GET", f"/events?{address.query}")
        stream = connection.getresponse()
        while data := stream.readline():
            told.append(len(data))
    except OSError:
        pass
    finally:
        connection.close()


def cpu_seconds(kind: str, steps: int) -> tuple[float, int]:
    """Of the training process, and the bytes that the clients were sent."""
    told: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(TRAINING, encoding="utf-8")
        page = ["--page"] if kind == "page" else []
        command = [sys.executable, "-m", "sawbones", "run", *page, "--out", f"{folder}/run"]
        training = subprocess.Popen(
            [*command, "train.py", str(steps)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert training.stdout is not None and training.stderr is not None
        if page:
            link = re.search(r"http://\S+", training.stderr.readline())
            assert link is not None
            for _ in range(CLIENTS):
                threading.Thread(target=listen, args=(link.group(), told), daemon=True).start()
        said, _ = training.communicate(timeout=900)
    return float(said.split("CPU")[1]), sum(told)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(given.rounds):
        for kind in (*KINDS[number % 3 :], *KINDS[: number % 3]):
            seconds, sent = cpu_seconds(kind, given.steps)
            found[kind].append(seconds)
            print(f"{kind:14} {seconds:.2f} s of CPU, {sent} bytes sent", flush=True)
    ratios = {
        kind: statistics.median(a / b for a, b in zip(found[kind], found["without"], strict=True))
        for kind in KINDS[1:]
    }
    told = (
        f"{CLIENTS} clients: {ratios['page']:.3f} of the CPU time without a page (median of "
        f"{given.rounds}); null {ratios['without again']:.3f}."
    )
    print(told)
    if given.out is not None:
        command = f"python benchmarks/page_cost.py --rounds {given.rounds} --steps {given.steps}"
        rows = [f"| {k} | {', '.join(f'{s:.2f}' for s in found[k])} |" for k in KINDS]
        machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
        at = f"load {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
        lines = ["# What the live page costs the training process", "", f"`{command}`", ""]
        lines += [f"{machine}; {at}.", "", told, "", "| kind | CPU seconds |", "|---|---|", *rows]
        given.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
