"""Run a user's script in this process exactly as `python train.py` would, with the recorder
installed.

torch is not imported here: scripts set environment variables before they import it, and those must
still count. An import hook installs the recorder the moment the script's own `import torch` is
done.
"""

from __future__ import annotations

import atexit
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import signal
import sys
import threading
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.masking import masker
from sawbones.observe import ctrl_c, interrupts
from sawbones.observe.guard import RAISE
from sawbones.observe.interrupts import HOLDING
from sawbones.observe.main_module import prepare_main
from sawbones.observe.options import Options
from sawbones.observe.printing import print_exception, print_exit_text
from sawbones.observe.saying import keep_stream, say
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.observe.sources.lines import LineWatch
from sawbones.schema import Crash, Ending, Site
from sawbones.schema.sources import RowChange

if TYPE_CHECKING:
    from sawbones.store import RunWriter

# the name under which `-m` was given, for this process and the ones it starts
MODULE = "SAWBONES_MODULE"

_here: list[Session] = []  # sessions that watch this process
_writers: weakref.WeakSet[RunWriter] = weakref.WeakSet()


def _abandon_writers() -> None:
    for writer in list(_writers):
        writer.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_writers)


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
        self.sources: LineWatch | None = None  # where data come from, under `diagnose`
        self.ending: Ending | None = None  # of the script, once it is done
        self.patches: Any = None
        self.on_ready: list[Callable[[Any], None]] = []
        self.on_finish: list[Callable[[Session], None]] = []
        self.prepare_spawned: tuple[str, str] | None = (
            None  # module and text: how processes of the script are made ready
        )

    def arm(self) -> None:
        if self.options.sources:
            self.sources = LineWatch(self._source_log)
            self.on_ready.append(self._hand_sources)
        if "torch" in sys.modules:
            self.try_install()
        else:
            sys.meta_path.insert(0, AfterImport("torch", self.try_install))

    def _source_log(self) -> Any:
        from sawbones.observe.sources.log import SourceLog  # reads NumPy, which the script now has
        from sawbones.store.codec import from_plain

        shown = SiteFinder(self.root).shown
        change = self.options.extra.get("source_change")
        return SourceLog(shown, from_plain(RowChange, change) if change else None)

    def _hand_sources(self, recorder: Any) -> None:
        recorder.sources = self.sources

    def try_install(self) -> None:
        """Inside the user's `import torch`: whatever goes wrong with watching, the import
        succeeds.
        """
        try:
            with HOLDING:
                self.install()
                self.recorder.sees_optimizers_built = True
        except Exception as error:
            if os.environ.get(RAISE):
                raise
            say(f"sawbones: watching could not start ({error}). Training continues unwatched.")

    def install(self) -> None:
        from sawbones.observe.environment import describe_environment
        from sawbones.observe.hooks import install_all
        from sawbones.observe.recorder import Recorder
        from sawbones.observe.spawned import spawned_rank

        interrupts.install()
        linecache.checkcache()  # files may have changed since an earlier recording
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
        _writers.add(recorder.writer)
        if recorder.journal is not None:
            recorder.guard("journal", recorder.journal.resume)
        for act in self.on_ready:
            act(recorder)

    def finish(self) -> None:
        """The script and the threads that it left behind are done."""
        with ctrl_c.collected():  # a second Ctrl-C must not cost what the first has left
            self.close(self.ending or Ending("finished", 0))
            for act in self.on_finish:
                act(self)

    def close(self, ending: Ending) -> None:
        with HOLDING:
            self._close(ending)
            if not _here:
                interrupts.restore()

    def _close(self, ending: Ending) -> None:
        if self.recorder is not None and ending.kind == "exception":
            self.recorder.guard(
                "ending", self.recorder.write_ending, ending
            )  # a launcher may end this rank before it is done here
        if self.patches is not None:
            self.patches.restore()
        if self in _here:
            _here.remove(self)
        if self.recorder is not None:
            from sawbones.observe import operators, origins
            from sawbones.observe.spawned import adopt

            self.recorder.close(ending)
            operators.take_off_ended()
            if not _here:
                origins.forget()
                masker().count_anew()
            adopt(self.folder)


def current_recorder() -> Any:
    """Of the session that watches this process; None where there is none."""
    return next((session.recorder for session in reversed(_here) if session.recorder), None)


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
    session = Session(
        folder, script, argv, options, root if root is not None else os.getcwd(), rank
    )
    keep_stream()
    interrupts.install()
    with HOLDING:
        if prepare is not None:
            prepare(session)
        session.arm()
        _end_on_sigterm(session)
        run_main = prepare_main(script, argv, _module_of(script))
    if session.sources is not None:
        session.sources.start()
    error = _execute(run_main)
    with HOLDING:  # a second Ctrl-C must not cost what the first has left to tell and to write
        ending = _ending(error, session)
        del error  # its traceback holds this frame
        if session.sources is not None:
            session.sources.stop()
        session.ending = ending
        if ending.kind == "finished" and _other_threads():
            # The script goes on in them: Python waits for them before it calls this.
            atexit.register(session.finish)
        else:
            session.finish()
    return ending.exit_code or 0, session


def _module_of(script: str) -> str | None:
    """The name that was given with `-m`. It is not left in the environment of the script."""
    module = os.environ.pop(MODULE, None)
    if module is None:
        return None
    path = os.path.abspath(script).removesuffix(".py")
    shown = module.replace(".", os.sep)
    same = path.endswith((shown, os.path.join(shown, "__main__")))
    return module if same else None


def _other_threads() -> bool:
    here = threading.current_thread()
    return any(t is not here and not t.daemon for t in threading.enumerate())


def _execute(run_main: Callable[[], None]) -> BaseException | None:
    """What the script raised is told by the caller, where it is no longer being handled: an error
    of the script's own excepthook would be shown as one that came of it.
    """
    try:
        run_main()
    except BaseException as error:
        return error
    return None


HOLDING.bridges.update((_execute.__code__, run_script.__code__))


def _ending(error: BaseException | None, session: Session) -> Ending:
    if error is None:
        return Ending("finished", 0)
    if isinstance(error, SystemExit):
        return exited(error, speak=True)
    if isinstance(error, KeyboardInterrupt):
        if session.recorder is not None and session.recorder.stop_wanted:
            return Ending("interrupted", 1, message=session.recorder.stop_wanted)
        print_exception(error)
        return Ending("interrupted", 130)
    if is_budget(error):
        return Ending("budget", 0, message=str(error))  # which budget: steps or seconds
    print_exception(error)
    return crashed(error, session)


def is_budget(error: BaseException) -> bool:
    return type(error).__name__ == "Finished" and type(error).__module__.startswith("sawbones.")


def exited(leaving: SystemExit, speak: bool = False) -> Ending:
    """`speak`: nobody else will print a text that was given instead of a number."""
    if leaving.code is None:
        return Ending("finished", 0)
    if isinstance(leaving.code, int):
        return Ending("finished" if leaving.code == 0 else "exit", leaving.code)
    if speak:
        print_exit_text(leaving.code)
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

    interrupts.set_own(signal.SIGTERM, stop)


def _with_trace(record: Crash | None, context: Mapping[str, Any]) -> Crash | None:
    """What a deep step, or the repeated call, knows of the operator that failed."""
    from sawbones.observe.post_mortem import with_traced_operands

    if record is not None and context.get("last_operators"):
        record = replace(record, recent=tuple(context["last_operators"]))
    if record is not None and context.get("failing"):
        record = with_traced_operands(record, context["failing"])
    return record


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
    record: Crash | None = None
    if session.recorder is not None:
        from sawbones.observe.crash import crash_context
        from sawbones.observe.post_mortem import crash_record

        # before everything else: what follows repeats the last call
        record = session.recorder.guard("post mortem", crash_record, session.recorder, error)
        if session.recorder.capture is not None:  # first: the context repeats the last call
            session.recorder.guard("capture", session.recorder.capture.crashed, error, inner)
        context = session.recorder.guard("crash", crash_context, session.recorder) or {}
        record = _with_trace(record, context)
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
        record,
    )
