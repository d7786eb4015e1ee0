"""The live page: what is read, what is sent, who may read it, and what the terminal compares."""

from __future__ import annotations

import http.client
import json
import math
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from sawbones.cli.main import main
from sawbones.page.document import document
from sawbones.page.following import Followed
from sawbones.page.hub import Hub
from sawbones.page.server import PageServer
from sawbones.schema import STEP_COLUMNS, Ending
from sawbones.store import RunWriter
from sawbones.store.uncommitted import keep_uncommitted


class Recording:
    """A run folder whose steps a test writes as it likes."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder = folder
        self.writer = RunWriter(folder)
        for key, value in (("script", "train.py"), ("argv", ["train.py"]), ("world_size", 1)):
            self.writer.meta(key, value)
        self.writer.meta("environment", {"torch": f"2.{seed}"})
        self.rng = np.random.default_rng(seed)
        self.rows = 0

    def steps(self, count: int, **own: float) -> None:
        for _ in range(count):
            step = float(self.rows)
            row = dict.fromkeys(STEP_COLUMNS, math.nan)
            row |= {"step": step, "optimizer": 0.0, "time": step / 10, "lr": 1e-3, "deep": 0.0}
            row |= {"loss": 2.0 + math.cos(step) / (1 + step), "step_ms": 10.0, "skipped": 0.0}
            row |= {"grad_norm": 1.0, "watch_ms": 0.1, "data_wait_ms": 1.0, "microsteps": 1.0}
            self.writer.step(self.rows, {**row, **own})
            self.rows += 1
        self.writer.flush()

    def end(self) -> None:
        self.writer.record("ending", 0, Ending("finished", 0))
        self.writer.close()


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    made = Recording(tmp_path / "run")
    yield made
    made.writer.close()


@pytest.fixture
def server(recording: Recording) -> Iterator[PageServer]:
    served = PageServer(Hub([recording.folder]))
    served.start()
    yield served
    served.stop()


def test_each_poll_reads_only_what_is_new(recording: Recording) -> None:
    run = Followed(recording.folder)
    recording.steps(5)
    run.poll()
    assert (run.rows, run.last_step, run.has_ended) == (5, 4, False)
    recording.steps(3)
    recording.end()
    run.poll()
    assert (run.rows, run.last_step, run.has_ended) == (8, 7, True)
    assert run.points(5, 8)["loss"]["x"] == [5, 6, 7]


def test_a_long_curve_keeps_its_extremes_and_says_where_it_broke(recording: Recording) -> None:
    recording.steps(3000)
    recording.steps(1, loss=99.0)
    recording.steps(1, loss=math.nan)
    recording.steps(3000)
    recording.steps(1, loss=-5.0)
    run = Followed(recording.folder)
    run.poll()
    loss = run.points(0, run.rows)["loss"]
    assert len(loss["x"]) <= 1004 and loss["x"] == sorted(loss["x"])
    assert (max(loss["y"]), min(loss["y"])) == (99.0, -5.0)
    assert loss["x"][loss["y"].index(99.0)] == 3000 and loss["broken"] == [3001]
    assert set(run.points(0, run.rows)) == {
        "loss",
        "grad_norm",
        "lr",
        "steps_per_s",
        "data_wait_ms",
    }
    finer = run.points(*run.rows_between(2995, 3005))["loss"]
    assert finer["x"] == [2994, 2995, 2996, 2997, 2998, 2999, 3000, 3002, 3003, 3004, 3005]


def test_two_optimizers_have_curves_of_their_own(recording: Recording) -> None:
    for _ in range(3):
        recording.steps(1, loss=1.0)
        recording.steps(1, optimizer=1.0, loss=9.0)
    run = Followed(recording.folder)
    run.poll()
    found = run.points(0, run.rows)
    assert set(found["loss"]["y"]) == {1.0} and set(found["loss#1"]["y"]) == {9.0}


def test_a_client_that_comes_back_with_its_cursor_gets_the_rest(recording: Recording) -> None:
    recording.steps(10)
    hub = Hub([recording.folder])
    hub.runs[0].poll()
    cursors = [0]
    assert hub.steps_since(cursors)["runs"][0]["from"] == 0 and cursors == [10]
    assert hub.steps_since(cursors) is None
    recording.steps(2)
    hub.runs[0].poll()
    news = hub.steps_since(cursors)
    assert news["cursor"] == [12] and news["runs"][0]["points"]["loss"]["x"] == [10, 11]


def ask(server: PageServer, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_only_the_link_on_this_machine_opens_it(server: PageServer, recording: Recording) -> None:
    recording.steps(4)
    good = f"token={server.token}"
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, f"/?{good}")[0] == 200
    assert ask(server, "/")[0] == ask(server, "/?token=guess")[0] == 403
    assert ask(server, f"/?{good}", Host="evil.example:80")[0] == 403
    assert ask(server, f"/series?{good}&from=0&to=3", Origin="http://evil.example")[0] == 403
    assert ask(server, f"/series?{good}&from=0&to=nan")[0] == 400
    assert ask(server, f"/etc/passwd?{good}")[0] == 404
    assert ask(server, f"/series?{good}&from=0&to=3", Host="localhost:9")[0] == 200


def test_the_page_without_its_data_is_small_and_complete() -> None:
    page, policy = document()
    assert len(page.encode()) < 100_000
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy


def test_events_tell_the_history_once_and_then_what_is_new(
    server: PageServer, recording: Recording
) -> None:
    recording.steps(20)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request("GET", f"/events?token={server.token}")
    stream = connection.getresponse()

    def next_steps() -> dict:
        while True:
            kind, data = stream.readline(), stream.readline()
            stream.readline()
            if kind.strip() == b"event: steps":
                return json.loads(data.decode().partition("data: ")[2])

    assert next_steps()["cursor"] == [20]
    recording.steps(5)
    began = time.monotonic()
    news = next_steps()
    assert time.monotonic() - began < 5
    assert news["runs"][0]["points"]["loss"]["x"] == [20, 21, 22, 23, 24]
    connection.close()


def test_compare_names_what_changed_and_where_the_losses_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("good", 1), ("bad", 2), ("same", 1)):
        made = Recording(tmp_path / name, seed)
        made.steps(6)
        made.steps(4, **({"loss": 7.0} if name == "bad" else {}))
        made.end()
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(tmp_path / "good"), str(tmp_path / "bad")])
    told = capsys.readouterr().out
    assert ended.value.code == 1
    assert "environment" in told and "2.1" in told and "2.2" in told
    assert "they part at step 6" in told
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(tmp_path / "good"), str(tmp_path / "same")])
    assert ended.value.code == 0 and "nothing differs" in capsys.readouterr().out


def test_the_link_comes_with_the_way_in_from_elsewhere(server: PageServer) -> None:
    from sawbones.cli.page import link_lines

    port = server.server_address[1]
    lines = link_lines(server.link)
    assert f"ssh -N -L {port}:127.0.0.1:{port}" in lines[1]
    assert parse_qs(urlsplit(server.link).query)["token"] == [server.token]


def test_what_was_not_committed_is_kept_masked_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "hf_" + "aB3dE5gH7jK9" * 3
    train = tmp_path / "train.py"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    train.write_text("rate = 0.1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    for name, text in (("good", "rate = 0.1\n"), ("bad", f"rate = 3.0\nkey = '{secret}'\n")):
        train.write_text(text)
        keep_uncommitted(tmp_path / name, tmp_path)
        made = Recording(tmp_path / name)
        made.steps(3)
        made.end()
    assert not (tmp_path / "good" / "changes.diff").exists()
    kept = tmp_path / "bad" / "changes.diff"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "+rate = 3.0" in kept.read_text() and secret not in kept.read_text()
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path / "good"), str(tmp_path / "bad")])
    told = capsys.readouterr().out
    assert "source       uncommitted change of train.py:" in told and "+rate = 3.0" in told
    assert max(map(len, told.splitlines()[1:])) <= 80


def test_a_run_that_was_not_there_yet_is_no_trouble_once_it_is(tmp_path: Path) -> None:
    hub = Hub([tmp_path / "run"])
    assert hub._looked(0) and "no recorded run" in hub.state()["views"][0]["trouble"]
    hub.version = 1
    made = Recording(tmp_path / "run")
    made.steps(3)
    made.end()
    hub.runs[0].poll()
    assert hub._looked(0)
    assert hub.state(since=1)["views"][0]["trouble"] == "", "a client keeps what is not replaced"
