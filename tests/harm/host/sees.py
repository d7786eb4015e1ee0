"""What a script can see of the process it runs in, one case per name."""

import sys

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Thing:
    value: int = 3


def double(x):
    return 2 * x


@case
def argv():
    print(sys.argv, sys.orig_argv[1:], sys.executable)


@case
def search_path():
    print(sys.path)


@case
def main_attributes():
    import __main__

    names = ("__name__", "__file__", "__package__", "__spec__", "__cached__", "__doc__")
    print({name: getattr(__main__, name) for name in names}, type(__main__.__loader__).__name__)
    print(__main__.__loader__.name, __main__.__loader__.path, __main__.__annotations__)
    print(__main__ is sys.modules["__main__"], __main__.__dict__ is globals(), __builtins__)


@case
def names_of_main():
    print([name for name in globals() if name.startswith("__")])


@case
def interpreter_flags():
    print(sys.flags, sys.dont_write_bytecode, sys.getrecursionlimit(), sys.getswitchinterval())
    print(sys.warnoptions, sys._xoptions, sys.getfilesystemencoding(), sys.getdefaultencoding())


@case
def streams():
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        print(stream.name, stream.encoding, stream.errors, stream.isatty())
    print(sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.line_buffering)
    print(sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__, sys.stdin is sys.__stdin__)


@case
def standard_input():
    print(sys.stdin.readline(), repr(input()), repr(sys.stdin.read()))


@case
def hooks():
    import threading

    print(sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__)
    print(threading.excepthook is threading.__excepthook__, sys.displayhook is sys.__displayhook__)
    print(sys.gettrace(), sys.getprofile(), sys.breakpointhook is sys.__breakpointhook__)


@case
def threads():
    import threading

    print(threading.active_count(), [t.name for t in threading.enumerate()])
    print(threading.current_thread() is threading.main_thread(), threading.Thread().name)


@case
def warning_filters():
    import warnings

    print(warnings.filters, warnings.showwarning.__module__)
    warnings.warn("a deprecated thing", DeprecationWarning, stacklevel=1)
    warnings.warn("a thing", stacklevel=1)


@case
def signal_handlers():
    import signal

    print([(int(n), str(signal.getsignal(n))) for n in sorted(signal.valid_signals())])
    print(signal.signal.__module__, signal.signal.__name__, signal.pthread_sigmask(0, []))


@case
def own_signal_handler():
    import signal

    def handler(number, frame):
        print("handled", number, frame.f_code.co_name, frame.f_lineno)

    print(signal.signal(signal.SIGUSR1, handler), signal.getsignal(signal.SIGUSR1) is handler)
    signal.raise_signal(signal.SIGUSR1)
    print(signal.signal(signal.SIGUSR1, signal.SIG_IGN) is handler)
    print(signal.signal(signal.SIGTERM, handler), signal.getsignal(signal.SIGTERM) is handler)
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)


@case
def wrong_signal_handler():
    import signal

    for number, handler in ((signal.SIGUSR1, "no handler"), (signal.SIGKILL, print), (9999, print)):
        try:
            signal.signal(number, handler)
        except (TypeError, OSError, ValueError) as error:
            print(type(error).__name__, error)


@case
def exit_functions():
    import atexit

    print(atexit._ncallbacks())


@case
def libraries_loaded():
    known = {"__main__", "sawbones", "_sysconfigdata__linux_x86_64-linux-gnu"}
    found = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
    print(sorted(name for name in found - known if not name.startswith(("_", "sitecustomize"))))


@case
def environment():
    import os

    print(sorted(os.environ.items()))


@case
def open_files():
    import os

    print(sorted(int(n) for n in os.listdir("/proc/self/fd")))


@case
def process_settings():
    import gc
    import locale
    import os
    import resource

    mask = os.umask(0o22)
    os.umask(mask)
    print(mask, os.nice(0), os.getcwd(), os.getpgid(0) == os.getpgid(os.getppid()))
    print(gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.get_debug(), locale.getlocale())
    print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE))


@case
def random_streams():
    import random

    random.seed(3)
    print(random.random(), hash("text") if not sys.flags.hash_randomization else "random")


@case
def logging_set_up():
    import logging

    print(logging.root.handlers, logging.root.level, logging.getLogger("x").isEnabledFor(10))
    logging.warning("a warning of the script")


@case
def pickled_class():
    import pickle

    data = pickle.dumps(Thing())
    print(Thing.__module__, Thing.__qualname__, type(pickle.loads(data)) is Thing, data)


@case
def own_source():
    import inspect

    print(inspect.getsource(Thing), inspect.getsourcefile(double), inspect.getmodule(double))


@case
def reloaded_main():
    import importlib

    try:
        importlib.reload(sys.modules["__main__"])
    except ModuleNotFoundError as error:
        print(type(error).__name__, error)


@case
def imports_itself():
    import sees

    print(sees.__name__, sees.__file__, sees.Thing is Thing)


@case
def compiled_without_inherited_flags():
    print(compile("1", "x", "eval").co_flags, double.__annotations__, double.__code__.co_filename)


@case
def call_stack():
    frame, names = sys._getframe(), []
    while frame is not None and frame.f_globals is globals():
        names.append((frame.f_code.co_name, frame.f_code.co_filename))
        frame = frame.f_back
    print(names)


@case
def settrace():
    seen = []
    sys.settrace(lambda frame, event, arg: seen.append((frame.f_code.co_name, event)))
    double(2)
    sys.settrace(None)
    print(seen)


@case
def spawned_pool():
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2, 3]))


@case
def forked_process():
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=print, args=("in a fork",))
    sys.stdout.flush()
    process.start()
    process.join()
    print(process.exitcode)


@case
def terminated_fork():
    import multiprocessing
    import time

    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    process.terminate()
    process.join()
    print(process.exitcode)


@case
def subprocess_of_itself():
    import subprocess

    print(subprocess.run([sys.executable, __file__, "argv"], capture_output=True, text=True))


@case
def run_by_path():
    import runpy

    sys.argv = ["other", "double"]
    found = runpy.run_path(__file__, run_name="other")
    print(found["__name__"], found["__file__"], sorted(found)[:5])


@case
def executor():
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool, ProcessPoolExecutor(1) as processes:
        print(list(pool.map(double, [1, 2])), list(processes.map(double, [3])))


@case
def asyncio_with_signal():
    import asyncio
    import os
    import signal

    async def main():
        got = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(got.wait(), 10)
        print("got the signal", signal.getsignal(signal.SIGINT).__class__.__name__)

    asyncio.run(main())


@case
def changes_folder():
    import os

    os.chdir("/")
    print(__file__, os.path.exists(__file__), sys.path[0], os.path.isdir(sys.path[0]))


@case
def faulthandler_off():
    import faulthandler

    print(faulthandler.is_enabled())


@case
def writes_files():
    import pathlib

    pathlib.Path("out").mkdir()
    pathlib.Path("out/numbers.txt").write_text("1 2 3")
    print(sorted(p.name for p in pathlib.Path().iterdir() if p.name != "__pycache__"))


if __name__ == "__main__":
    CASES[sys.argv[1]]()
