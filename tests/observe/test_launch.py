"""`sawbones run train.py ARGS` is `python train.py ARGS`: what the script sees, and what the shell
sees of it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Bench

from sawbones.store import read_run

WHAT_A_SCRIPT_SEES = """
    import json, os, pickle, sys
    assert "torch" not in sys.modules
    class Thing: pass
    main = sys.modules["__main__"]
    print(json.dumps({
        "argv": sys.argv, "name": __name__, "file": __file__, "path0": sys.path[0], "main": main.__file__, "cwd": os.getcwd(),
        "own": main.__dict__ is globals(), "doc": __doc__, "package": __package__, "annotations": "annotations" in globals(),
        "pickled": type(pickle.loads(pickle.dumps(Thing()))).__qualname__, "module": Thing.__module__,
        "flags": compile("1", "x", "eval").co_flags,
    }))
"""

ENDINGS = {
    "falls off the end": "print('done')",
    "exit status": "import sys; sys.exit(3)",
    "exit with a text": "import sys; sys.exit('no data in folder')",
    "exit without a value": "import sys; sys.exit()",
    "exit with false": "raise SystemExit(False)",
    "exit with a tuple": "raise SystemExit((1, 2))",
    "exception": "def f():\n    raise ValueError('bad value')\nf()",
    "chained exception": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e"
    ),
    "syntax error": "print('x'\n",
    "os._exit": "import os, sys; print('out', flush=True); os._exit(5)",
    "atexit": "import atexit; atexit.register(print, 'at exit'); print('body')",
    "thread left": (
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), "
        "print('thread'))).start()"
    ),
}


def test_a_script_sees_what_python_would_show_it(bench: Bench) -> None:
    args = ("--lr", "0.1", "--out", "x", "--", "a b", "-q")
    bare, seen = bench.bare(WHAT_A_SCRIPT_SEES, *args), bench.watched(WHAT_A_SCRIPT_SEES, *args)
    assert bare.stdout and (bare.stdout, bare.status) == (seen.stdout, seen.status)


@pytest.mark.parametrize("name", ENDINGS)
def test_output_and_exit_status_are_the_scripts_own(name: str, bench: Bench) -> None:
    bare, seen = bench.bare(ENDINGS[name]), bench.watched(ENDINGS[name])
    assert (bare.stdout, bare.stderr, bare.status) == (seen.stdout, seen.stderr, seen.status)


def test_a_script_without_torch_leaves_no_run_and_says_so(bench: Bench) -> None:
    seen = bench.watched("print('hello')", flags=())
    assert seen.status == 0 and seen.stdout == "hello\n"
    assert "never imported torch" in seen.stderr and not seen.folder.exists()


def test_environment_set_before_the_import_of_torch_still_counts(bench: Bench) -> None:
    source = """
        import os, sys
        assert "torch" not in sys.modules
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "2"
        import torch
        print(torch.get_num_threads())
    """
    seen = bench.watched(source)
    assert seen.stdout == "2\n"
    assert seen.run.ending.kind == "finished"


CRASH = """
    import torch

    def outer(model, x):
        return model(x)

    model = torch.nn.Linear(4, 2)
    for n in (4, 4, 3):
        outer(model, torch.zeros(2, n)).sum().backward()
"""


def test_an_exception_shows_the_users_traceback_and_none_of_our_frames(bench: Bench) -> None:
    bare, seen = bench.bare(CRASH), bench.watched(CRASH)
    assert seen.status == bare.status == 1
    assert "sawbones" not in seen.stderr
    assert [line for line in seen.stderr.splitlines() if "train.py" in line] == [
        line for line in bare.stderr.splitlines() if "train.py" in line
    ]
    assert seen.stderr.splitlines()[-1] == bare.stderr.splitlines()[-1]
    ending = seen.run.ending
    assert (ending.kind, ending.exit_code, ending.exception) == ("exception", 1, "RuntimeError")
    assert (
        ending.site is not None
        and ending.site.function == "outer"
        and ending.site.code == "return model(x)"
    )


ENDLESS = """
    import sys, time, torch
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        while True:
            optimizer.zero_grad()
            model(torch.ones(2, 4)).mean().backward()
            optimizer.step()
            print("step", flush=True)
            time.sleep(0.01)
    except BaseException as e:
        print("caught", type(e).__name__, flush=True)
        raise
"""


def interrupt(bench: Bench, number: int, steps: int = 20) -> tuple[int, str, str]:
    process = subprocess.Popen(
        bench.command(bench.script(ENDLESS)),
        cwd=bench.folder,
        env=bench.environment(True),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(steps):
        process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_sigterm_ends_the_script_as_it_would_have_and_the_ending_is_kept(bench: Bench) -> None:
    status, out, err = interrupt(bench, signal.SIGTERM)
    assert (
        status == -signal.SIGTERM and "caught" not in out and err == ""
    )  # Python runs no handler of the script's either
    run = read_run(bench.folder / "run")
    assert (run.ending.kind, run.ending.exit_code) == ("terminated", 143) and run.num_steps >= 19


def test_ctrl_c_reaches_the_script_and_the_ending_is_kept(bench: Bench) -> None:
    status, out, err = interrupt(bench, signal.SIGINT)
    assert status in (130, -signal.SIGINT) and "caught KeyboardInterrupt" in out
    assert err.rstrip().endswith("KeyboardInterrupt") and "sawbones" not in err
    run = read_run(bench.folder / "run")
    assert (run.ending.kind, run.ending.exit_code) == ("interrupted", 130) and run.num_steps >= 19


def test_loader_workers_start_by_fork_and_by_spawn(bench: Bench) -> None:
    seen = bench.watched("""
        import os, torch
        from torch.utils.data import DataLoader, Dataset

        class Squares(Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, i):
                torch.nn.Linear(1, 1)(torch.ones(1))  # what a worker computes is no event of the loop's
                return torch.tensor([float(i)]), torch.tensor([float(i * i)]), os.getpid()

        def main():
            model = torch.nn.Linear(1, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
            for how in ("fork", "spawn"):
                loader = DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=how)
                for x, y, pids in loader:
                    assert os.getpid() not in pids
                    optimizer.zero_grad()
                    torch.nn.functional.mse_loss(model(x), y).backward()
                    optimizer.step()
                print(how, flush=True)

        if __name__ == "__main__":
            main()
    """)
    assert seen.status == 0 and seen.stdout == "fork\nspawn\n", seen.stderr
    run = seen.run
    assert run.num_steps == 6 and len(run.batches) == 6
    assert [b.fingerprints for b in run.batches[:3]] != [] and len(run.of_kind("forward")) == 6
    assert all(b.source.startswith("loader:") and b.wait_ms > 0 for b in run.batches)


def test_a_folder_with_a_run_is_not_written_over(bench: Bench) -> None:
    """It is refused before anything of the script happens."""
    assert bench.watched("import torch; print('first')").status == 0
    again = bench.watched("print('second')")
    assert (
        again.status == 2 and again.stdout == "" and "holds a recorded run already" in again.stderr
    )


def test_a_module_runs_as_python_m_would_run_it(tmp_path: Path) -> None:
    package = tmp_path / "work" / "models"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "size.py").write_text("SIZE = 3")
    (package / "train.py").write_text(
        "import sys, torch\nfrom .size import SIZE\nimport models.size\nprint(__name__, __package__, SIZE, sys.argv[1:])\n"
        "w = torch.zeros(SIZE, requires_grad=True)\no = torch.optim.SGD([w], lr=0.1)\n(w - 1).square().sum().backward()\no.step()\n"
    )
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "sawbones",
        "run",
        "--quiet",
        "--out",
        str(out),
        "-m",
        "models.train",
        "--lr",
        "1",
    ]
    ended = subprocess.run(command, cwd=tmp_path / "work", capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "__main__ models 3 ['--lr', '1']"
    assert read_run(out).num_steps == 1
    missing = subprocess.run(
        [*command[:5], "-m", "models.absent"], cwd=tmp_path / "work", capture_output=True, text=True
    )
    assert missing.returncode == 2 and "models.absent" in missing.stderr
