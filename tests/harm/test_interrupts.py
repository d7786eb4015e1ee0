"""Ctrl-C, once or twice, at any moment: one line, status 4, nothing left. `run` ends as bare Python
does.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest
from ended import EVERYTHING, Patient, Running, moments
from host_runs import Seen, both, case_names, script

from sawbones.report.json_report import report_schema
from sawbones.store import read_run

UNTIL = 14.0  # by then a diagnosis is watching its script, however busy the machine


def _interrupted(running, moment: float, times: int) -> tuple[int, str, str]:
    running.wait_and_look(moment)
    for _ in range(times):
        running.send(signal.SIGINT)
        time.sleep(0.15)
    return running.ended()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("moment", moments(10, UNTIL), ids="{:.1f}s".format)
def test_diagnose_reports_what_it_knows_and_leaves_nothing(
    tmp_path: Path, moment: float, times: int
) -> None:
    patient = Patient.admitted(tmp_path)
    before = patient.state()
    running = patient.start("-m", "sawbones", "diagnose", "--quiet", "--json", "-", "train.py")
    status, out, err = _interrupted(running, moment, times)
    assert status == 4, err
    said = [line for line in err.splitlines() if not line.startswith("sawbones: Isolation: ")]
    assert len(said) == 1 and "interrupted" in said[0]
    assert "Traceback" not in out + err
    if out:  # nothing, while it was still starting
        report = json.loads(out)
        jsonschema.validate(report, report_schema())
        assert report["verdict"] == "inconclusive"
        assert "interrupted" in " ".join(report["notes"])
    assert patient.state() == before
    assert running.left_alive() == []
    assert list(patient.temporary.glob("sawbones*")) == []


# Ahead of the patient's script: it notes when torch's extension began to be loaded and when torch
# went on after it. In between the extension imports NumPy and takes whatever ends that for NumPy
# not being there: Ctrl-C is lost, or breaks the script later, with bare Python too
# (test_run_is_interrupted_as_bare_python_is_while_torch_is_imported).
NOTES_THE_EXTENSION = """
import os, sys, time
def note(event, args, seen=[]):
    if event == "import" and len(seen) < 2:
        name = args[0]
        if name == "torch._C" if not seen else "numpy" in sys.modules and name.startswith("torch."):
            seen.append(time.monotonic())
            with open(os.path.join(os.environ["TMPDIR"], "extension"), "a") as file:
                file.write(f"{seen[-1]}\\n")
sys.addaudithook(note)
"""


def _met_the_extension(patient: Patient, running: Running) -> bool:
    noted = patient.temporary / "extension"
    times = [float(line) for line in noted.read_text().split()] if noted.exists() else []
    begun, ended = [*times, float("inf"), float("inf")][:2]
    return any(begun <= moment <= ended for moment in running.sent)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("moment", moments(10, UNTIL), ids="{:.1f}s".format)
def test_run_ends_by_the_signal_as_bare_python_does(
    tmp_path: Path, moment: float, times: int
) -> None:
    patient = Patient.admitted(tmp_path)
    source = patient.folder / "train.py"
    source.write_text(NOTES_THE_EXTENSION + source.read_text())
    before = patient.state("last.pt", "log.txt")
    running = patient.start("-m", "sawbones", "run", "--out", "kept", "train.py")
    try:
        status, _, err = _interrupted(running, moment, times)
    except subprocess.TimeoutExpired:
        assert _met_the_extension(patient, running), "it was not ended"
        running.send(signal.SIGINT)
        status, _, err = running.ended()
    if not _met_the_extension(patient, running):
        assert status == -signal.SIGINT, err
        # Python says of what a second one stops while it ends itself that it was ignored.
        ignored = err.count("Exception ignored in")
        raised = err.count("Traceback (most recent call last)") - ignored
        assert ignored < times and raised <= 1, err
        if (patient.folder / "log.txt").exists():
            assert raised == 1, "a script that was training tells where it was"
    assert "sawbones/cli" not in err and "sawbones/observe" not in err
    assert patient.state("last.pt", "log.txt", "kept") == before
    assert running.left_alive() == []


def _interrupted_at(tmp_path: Path, *moment: str) -> tuple[Seen, Seen]:
    bare, watched = both(tmp_path, script("interrupted.py"), ["interrupted.py", *moment])
    return _at_any_depth(bare), _at_any_depth(watched)


def _at_any_depth(seen: Seen) -> Seen:
    """The stack is some frames deeper, as the list of differences says."""
    text = re.sub(r"repeated \d+ more times", "repeated", seen.stderr)
    return Seen(seen.status, seen.stdout, text, seen.files)


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Torch's and NumPy's modules, in the order in which `import torch` imports them."""
    bare, watched = _interrupted_at(tmp_path_factory.mktemp("imports"), "import", "0")
    assert watched.stdout.startswith(bare.stdout)  # what the recorder imports comes after them
    return bare.stdout.split()


@pytest.mark.parametrize("share", [i / 10 for i in range(10)] if EVERYTHING else [0.7])
def test_run_is_interrupted_as_bare_python_is_while_torch_is_imported(
    tmp_path: Path, imports: list[str], share: float
) -> None:
    extension = imports.index("numpy")
    while_numpy = [i for i, name in enumerate(imports) if name.startswith("numpy")]
    anywhere = [i for i in range(len(imports)) if i < extension or i > while_numpy[-1]]
    for among in (while_numpy, anywhere):
        number = among[int(share * len(among))] + 1
        folder = tmp_path / str(number)
        bare, watched = _interrupted_at(folder, "import", str(number))
        assert watched == bare, imports[number - 1]
        if among is anywhere:
            assert watched.status == -signal.SIGINT


@pytest.mark.parametrize("moment", case_names("interrupted.py"))
def test_a_second_ctrl_c_does_what_it_does_to_bare_python(tmp_path: Path, moment: str) -> None:
    bare, watched = _interrupted_at(tmp_path, moment)
    assert (watched.status, watched.stdout) == (bare.status, bare.stdout)
    assert bare.status == -signal.SIGINT
    if moment == "as_the_excepthook_returns":  # while the recording is closed it changes nothing
        assert bare.stderr.startswith("Exception ignored in: <module 'threading'")
        assert watched.stderr == ""
    else:
        assert watched.stderr == bare.stderr
    assert read_run(tmp_path / "b" / "run").ending.kind == "interrupted"


def test_a_script_that_handles_ctrl_c_keeps_its_own_status(tmp_path: Path) -> None:
    patient = Patient.admitted(tmp_path)
    source = patient.folder / "train.py"
    handled = "    ".join(source.read_text().splitlines(keepends=True))
    source.write_text(f"try:\n    {handled}\nexcept KeyboardInterrupt:\n    raise SystemExit(7)\n")
    for command in (["train.py"], ["-m", "sawbones", "run", "--quiet", "train.py"]):
        (patient.folder / "log.txt").unlink(missing_ok=True)
        running = patient.start(*command)
        while not (patient.folder / "log.txt").exists():
            assert running.process.poll() is None
            time.sleep(0.1)
        running.send(signal.SIGINT)
        status, _, err = running.ended()
        assert (status, err) == (7, ""), command


@pytest.mark.parametrize(
    "command",
    [
        ("profile", "--steps", "100000", "train.py"),
        ("check", "--quiet", "--steps", "100000", "pieces.py:subject"),
        ("lab", "run", "loop.no-zero-grad"),
        ("lab", "bench", "--only", "loop.no-zero-grad"),
        ("train", "--steps", "100000"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_every_other_command_ends_with_status_4_and_one_line(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    patient = Patient.admitted(tmp_path)
    (patient.folder / "pieces.py").write_text(
        "import time, torch\n"
        "def batches():\n"
        "    for _ in range(100_000):\n"
        "        time.sleep(0.01)\n"
        "        yield torch.randn(4, 2)\n"
        "subject = {\n"
        "    'model': lambda: torch.nn.Linear(2, 1),\n"
        "    'data': batches,\n"
        "    'loss': lambda outputs, batch: outputs.square().mean(),\n"
        "    'optimizer': lambda parameters: torch.optim.SGD(parameters, 0.1),\n"
        "}\n"
    )
    running = patient.start("-m", "sawbones", *command)
    # One lab script is done within a few seconds on an idle machine.
    status, out, err = _interrupted(running, 2.0 if command[:2] == ("lab", "run") else 5.0, 2)
    assert status == 4, (out, err)
    assert "Traceback" not in out + err
    assert err.splitlines()[-1] == "sawbones: interrupted"
    assert running.left_alive() == []
    assert list(patient.temporary.glob("sawbones*")) == []


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_audit_ends_with_status_4_and_one_line(tmp_path: Path, times: int) -> None:
    patient = Patient.admitted(tmp_path)
    (patient.folder / "pieces.py").write_text(
        "import time, torch\n"
        "class Rows(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n"
        "        return 100_000\n"
        "    def __getitem__(self, index):\n"
        "        open('reading', 'w').close()\n"
        "        time.sleep(0.01)\n"
        "        return {'x': index, 'text': f'row {index}'}\n"
        "rows = Rows()\n"
    )
    running = patient.start("-m", "sawbones", "audit", "data", "--train", "pieces:rows")
    while not (patient.folder / "reading").exists():
        assert running.process.poll() is None, running.ended()
        time.sleep(0.1)
    status, out, err = _interrupted(running, 0.3, times)
    assert (status, out, err) == (4, "", "sawbones: interrupted\n")
    assert running.left_alive() == []
    assert list(patient.temporary.glob("sawbones*")) == []


def test_an_interrupted_replay_leaves_nothing(tmp_path: Path) -> None:
    patient = Patient.admitted(tmp_path)
    (patient.folder / "train.py").write_text(
        "import os, time, torch\n"
        "time.sleep(float(os.environ.get('SLOW', '0')))\n"
        "model = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(4):\n"
        "    optimizer.zero_grad()\n"
        "    model(torch.ones(4, 2 if step < 3 else 5)).square().mean().backward()\n"
        "    optimizer.step()\n"
    )
    assert patient.start("-m", "sawbones", "run", "--quiet", "train.py").ended()[0] == 1
    (bundle,) = (patient.folder / ".sawbones").rglob("*.sawbones")
    before = patient.state()
    running = patient.start("-m", "sawbones", "replay", str(bundle), SLOW="60")
    status, out, err = _interrupted(running, 6.0, 2)
    assert status == 4, (out, err)
    assert "Traceback" not in out + err and err.splitlines()[-1] == "sawbones: interrupted"
    assert running.left_alive() == []
    assert list(patient.temporary.glob("sawbones*")) == []
    assert patient.state() == before
