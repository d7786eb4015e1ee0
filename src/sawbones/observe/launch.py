"""Run a user's script in this process exactly as `python train.py` would, with the recorder
installed.

torch is not imported here: scripts set environment variables before they import it, and those must
still count. An import hook installs the recorder the moment the script's own `import torch` is
done.
"""

from __future__ import annotations

import builtins
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sawbones.observe import ctrl_c
from sawbones.observe.guard import RAISE
from sawbones.observe.options import Options
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.observe.spawned import adopt, spawned_rank
from sawbones.schema import Ending, Site

# the name under which `-m` was given, for this process and the ones it starts
MODULE = "SAWBONES_MODULE"

_here: list[Session] = []  # sessions that watch this process


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls `act` once, right after `name` has been imported."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act
        self._busy = False

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        loader, act = spec.loader, self._act
        original = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            original(module)
            loader.exec_module = original  # type: ignore[method-assign]
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            act()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class Session:
    """The recorder of this process, from before torch is imported until the script has ended."""

    def __init__(
        self, folder: Path, script: str, argv: Sequence[str], options: Options, root: str, rank: int
    ) -> None:
        self.folder, self.script, self.argv, self.options, self.root, self.rank = (
            folder,
            script,
            argv,
            options,
            root,
            rank,
        )
        self.recorder: Any = None
        self.ending: Ending | None = None  # of the script, once it is done
        self.patches: Any = None
        self.on_ready: list[Callable[[Any], None]] = []
        self.prepare_spawned: tuple[str, str] | None = (
            None  # module and text: how processes of the script are made ready
        )

    def arm(self) -> None:
        if "torch" in sys.modules:
            self.try_install()
        else:
            sys.meta_path.insert(0, AfterImport("torch", self.try_install))

    def try_install(self) -> None:
        """Inside the user's `import torch`: whatever goes wrong with watching, the import
        succeeds.
        """
        try:
            self.install()
        except Exception as error:
            if os.environ.get(RAISE):
                raise
            print(
                f"sawbones: watching could not start ({error}). Training continues unwatched.",
                file=sys.stderr,
            )

    def install(self) -> None:
        from sawbones.observe.environment import describe_environment
        from sawbones.observe.hooks import install_all
        from sawbones.observe.recorder import Recorder

        recorder = Recorder(self.folder, self.options, self.root, self.rank)
        self.recorder = recorder
        recorder.writer.meta("script", self.script)
        recorder.writer.meta("argv", list(self.argv))
        recorder.writer.meta("rank", self.rank)
        recorder.writer.meta("world_size", int(os.environ.get("WORLD_SIZE", "1")))
        recorder.writer.meta("environment", describe_environment())
        recorder.writer.flush()  # what was run is on disk before anything can go wrong with either
        recorder.for_process = functools.partial(spawned_rank, self)
        self.patches = install_all(recorder)
        _here.append(self)
        os.register_at_fork(after_in_child=recorder.writer.abandon)
        if recorder.journal is not None:
            recorder.guard("journal", recorder.journal.resume)
        for act in self.on_ready:
            act(recorder)

    def close(self, ending: Ending) -> None:
        if self.recorder is not None and ending.kind == "exception":
            self.recorder.guard(
                "ending", self.recorder.write_ending, ending
            )  # a launcher may end this rank before it is done here
        if self.patches is not None:
            self.patches.restore()
        if self in _here:
            _here.remove(self)
        if self.recorder is not None:
            self.recorder.close(ending)
            adopt(self.folder)


def forget_parent() -> None:
    """In a forked process: what watches the parent lets go of this one."""
    while _here:
        session = _here.pop()
        session.patches.restore()
        session.recorder.active = False


def run_script(
    script: str,
    argv: Sequence[str],
    folder: Path,
    options: Options,
    *,
    root: str | None = None,
    rank: int = 0,
    prepare: Callable[[Session], None] | None = None,
) -> tuple[int, Session]:
    """Executes the script as __main__; returns the exit status that `python script` would have
    had.
    """
    path = os.path.abspath(script)
    session = Session(
        folder, script, argv, options, root if root is not None else os.getcwd(), rank
    )
    if prepare is not None:
        prepare(session)
    session.arm()
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=script, __builtins__=builtins, __spec__=None, __cached__=None, __loader__=None
    )
    sys.argv = [script, *argv]
    sys.path[0:1] = [os.path.dirname(path)]
    module = os.environ.get(MODULE)
    if module and path.removesuffix(".py").removesuffix(f"{os.sep}__main__").endswith(
        module.replace(".", os.sep)
    ):
        _as_module(main, module, path)
    sys.modules["__main__"] = main
    _end_on_sigterm(session)
    session.ending = ending = _execute(path, script, main, session)
    with ctrl_c.collected():  # a second Ctrl-C must not cost what the first has left
        session.close(ending)
    return ending.exit_code or 0, session


def _as_module(main: types.ModuleType, name: str, path: str) -> None:
    """As `python -m name` has it: found from the working folder, with a package for its relative
    imports.
    """
    sys.path[0] = os.getcwd()
    main.__package__ = name.rpartition(".")[0]
    main.__spec__ = importlib.util.spec_from_file_location(name, path)


def _execute(path: str, script: str, main: types.ModuleType, session: Session) -> Ending:
    try:
        with open(path, "rb") as source:
            # dont_inherit: the __future__ flags of this file must not become the script's
            code = compile(
                source.read(), script if os.path.isabs(script) else path, "exec", dont_inherit=True
            )
        exec(code, main.__dict__)
    except SystemExit as leaving:
        return exited(leaving)
    except KeyboardInterrupt as error:
        _print_user_traceback(error)
        return Ending("interrupted", 130)
    except BaseException as error:
        if is_budget(error):
            return Ending("budget", 0, message=str(error))  # which budget: steps or seconds
        _print_user_traceback(error)
        return crashed(error, session)
    return Ending("finished", 0)


def is_budget(error: BaseException) -> bool:
    return type(error).__name__ == "Finished" and type(error).__module__.startswith("sawbones.")


def exited(leaving: SystemExit) -> Ending:
    if leaving.code is None:
        return Ending("finished", 0)
    if isinstance(leaving.code, int):
        return Ending("finished" if leaving.code == 0 else "exit", leaving.code)
    print(leaving.code, file=sys.stderr)
    return Ending("exit", 1)


def _end_on_sigterm(session: Session) -> None:
    """SIGTERM with no handler of the user's kills a Python process on the spot, without finally
    blocks. It still does, once
    the ending is written."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        return

    def stop(signum: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            session.close(Ending("terminated", 143))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)


def _print_user_traceback(error: BaseException) -> None:
    """As Python would print it: without the frames of this file at the top and of our wrappers
    below.
    """
    stack = traceback.TracebackException.from_exception(error)
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    kept = [
        frame
        for frame in stack.stack
        if not frame.filename.startswith(own) or is_user_file(frame.filename)
    ]
    stack.stack = traceback.StackSummary.from_list(kept)
    print("".join(stack.format()), end="", file=sys.stderr)


def crashed(error: BaseException, session: Session) -> Ending:
    sites = session.recorder.sites if session.recorder is not None else SiteFinder(session.root)
    frames: list[Site] = []
    inner: Site | None = None
    tb = error.__traceback__
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        own = os.sep + "sawbones" + os.sep in name and not is_user_file(name)
        if not own and not name.startswith("<frozen"):
            code = tb.tb_frame.f_code
            site = Site(
                sites.shown(name),
                tb.tb_lineno,
                code.co_name,
                linecache.getline(name, tb.tb_lineno).strip()[:200],
            )
            frames.append(site)
            if is_user_file(name):
                inner = site
        tb = tb.tb_next
    context: dict[str, Any] = {}
    if session.recorder is not None:
        from sawbones.observe.crash import crash_context

        if session.recorder.capture is not None:  # first: the context repeats the last call
            session.recorder.guard("capture", session.recorder.capture.crashed, error, inner)
        context = session.recorder.guard("crash", crash_context, session.recorder) or {}
    return Ending(
        "exception",
        1,
        type(error).__name__,
        str(error)[:2000],
        tuple(frames[-40:]),
        inner,
        context.get("batch"),
        tuple(context.get("modules", ())),
        context.get("failing"),
    )
