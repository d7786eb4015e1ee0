"""`run --on-finding` and `--stop-on`: real scripts, a real command and a real service."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sawbones.live import Alerts, StopOn
from sawbones.live import alerts as alerts_module
from sawbones.schema import Finding

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(400, 4)
y = x.sum(1, keepdim=True)
y[90] = float("nan")
try:
    for i in range(60):
        loss = ((model(x[i * 4 : i * 4 + 4]) - y[i * 4 : i * 4 + 4]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
finally:
    open("last_words.txt", "w").write(str(i))
print("done")
"""


class _Service:
    """Refuses the first `refusals` messages, as a service that has a bad moment does."""

    def __init__(self, refusals: int) -> None:
        self.got: list[dict[str, Any]] = []
        self.asked = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.asked += 1
                if service.asked <= refusals:
                    self.send_response(503)
                else:
                    service.got.append(json.loads(body))
                    self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_a_nan_is_passed_on_with_its_step_and_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    service = _Service(refusals=1)
    command = [sys.executable, "-m", "sawbones", "run", "--out", "kept"]
    command += ["--on-finding", "cat >> told.txt; echo >> told.txt", "--on-finding", service.url]
    command += ["--stop-on", "nonfinite", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    service.close()
    assert done.returncode == 1, done.stderr
    assert "done" not in done.stdout and "Traceback" not in done.stderr
    assert "ended by --stop-on: non-finite: the loss is nan at step 22" in done.stderr
    assert int((tmp_path / "last_words.txt").read_text()) <= 22 + 5
    told = [json.loads(line) for line in (tmp_path / "told.txt").read_text().splitlines()]
    for messages in (told, service.got):
        first = next(m for m in messages if m["name"] == "non-finite")
        assert first["text"] == "the loss is nan at step 22"
        assert first["kind"] == "symptom" and first["step"] <= 22 + 5
    assert service.asked > len(service.got)  # the refused one came again


def test_what_cannot_be_delivered_costs_no_time_and_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alerts_module, "FIRST_WAIT_S", 0.01)
    alerts = Alerts(["exit 3", "http://127.0.0.1:9/nobody"])
    alerts.send({"kind": "finding", "name": "loop.no-step", "step": 5})
    alerts.finish()
    said = capsys.readouterr().err
    assert "--on-finding exit 3: ended with status 3 (tried 4 times)" in said
    assert "http://127.0.0.1:9/nobody" in said


def _finding(fault: str, status: str) -> Finding:
    return Finding(fault, status, 0.9, "title", (), ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "fault", "status", "ends"),
    [
        ("likely", "loop.no-step", "proven", True),
        ("proven", "loop.no-step", "likely", False),
        ("loop.no-step", "loop.no-step", "likely", True),
        ("loop.no-step", "loop.no-step", "suspected", False),
        ("nonfinite", "loop.no-step", "proven", False),
    ],
)
def test_what_ends_a_run(words: str, fault: str, status: str, ends: bool) -> None:
    assert StopOn.parsed(words).ends(_finding(fault, status)) is ends


@pytest.mark.parametrize("text", ["", "nan", "likely,loop.nothing"])
def test_an_unknown_word_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="neither nonfinite, likely, proven nor a fault id"):
        StopOn.parsed(text)
