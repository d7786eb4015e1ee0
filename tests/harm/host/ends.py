"""How a script can end, one case per name."""

import os
import sys

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def falls_off_the_end():
    print("done")


@case
def exit_status():
    sys.exit(3)


@case
def exit_text():
    sys.exit("no data in folder")


@case
def exit_none():
    sys.exit()


@case
def exit_false():
    raise SystemExit(False)


@case
def exit_tuple():
    raise SystemExit((1, 2))


@case
def exit_negative():
    sys.exit(-1)


@case
def exit_large():
    sys.exit(256 + 7)


@case
def exit_in_finally():
    try:
        sys.exit(4)
    finally:
        print("finally")


@case
def exit_in_thread():
    import threading

    thread = threading.Thread(target=sys.exit, args=(5,))
    thread.start()
    thread.join()


@case
def hard_exit():
    print("out", flush=True)
    os._exit(6)


@case
def abort():
    os.abort()


@case
def exception():
    def inner():
        raise ValueError("bad value")

    inner()


@case
def chained_exception():
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as error:
        raise KeyError("k") from error


@case
def exception_group():
    raise ExceptionGroup("several", [ValueError(1), TypeError(2)])


@case
def exception_with_notes():
    error = ValueError("bad")
    error.add_note("a note")
    raise error


@case
def own_exception():
    class Broken(Exception):
        def __str__(self):
            return "broken text"

    raise Broken


@case
def syntax_error():
    exec(compile("print('x'\n", "given.py", "exec"))


@case
def excepthook():
    def hook(kind, error, tb):
        frames = []
        while tb is not None:
            frames.append(tb.tb_frame.f_code.co_name)
            tb = tb.tb_next
        print("hook", kind.__name__, error, frames)

    sys.excepthook = hook
    raise ValueError("for the hook")


@case
def last_exception():
    import atexit

    atexit.register(lambda: print(sys.last_type, sys.last_value))
    raise ValueError("the last")


@case
def keyboard_interrupt():
    raise KeyboardInterrupt


@case
def interrupted():
    import signal

    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**6):
        pass


@case
def interrupted_and_exit_functions():
    import atexit

    atexit.register(print, "at exit")
    raise KeyboardInterrupt


@case
def terminated():
    import signal

    print("before", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(10**7):
        pass


@case
def terminated_with_handler():
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(10**6):
        pass


@case
def killed():
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


@case
def user_signal():
    import signal

    os.kill(os.getpid(), signal.SIGUSR1)


@case
def alarm():
    import signal
    import time

    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(10)


@case
def alarm_that_raises():
    import signal
    import time

    def ring(number, frame):
        raise TimeoutError("too slow")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        time.sleep(10)
    except TimeoutError as error:
        print(error)


@case
def exit_functions_in_order():
    import atexit

    for number in range(3):
        atexit.register(print, number)
    print("body")


@case
def exit_function_fails():
    import atexit

    atexit.register(lambda: 1 / 0)


@case
def thread_left():
    import threading
    import time

    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    print("main")


@case
def thread_left_then_exit_functions():
    import atexit
    import threading
    import time

    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    sys.exit(8)


@case
def daemon_thread_left():
    import threading
    import time

    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


@case
def executor_left():
    from concurrent.futures import ThreadPoolExecutor

    ThreadPoolExecutor(1).submit(print, "in the pool")


@case
def thread_raises():
    import threading

    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()


@case
def unraisable():
    class Loud:
        def __del__(self):
            raise ValueError("in a finalizer")

    Loud()


@case
def global_finalizer():
    global kept

    class Last:
        def __del__(self):
            print("finalized")

    kept = Last()


@case
def finalizers():
    import weakref

    class Thing:
        pass

    global kept
    kept = Thing()
    weakref.finalize(kept, print, "finalize")


@case
def closed_stdout():
    print("before")
    sys.stdout.close()


@case
def stdout_that_cannot_be_flushed():
    class Full:
        def write(self, text):
            return len(text)

        def flush(self):
            raise OSError(28, "No space left on device")

    sys.stdout = Full()


@case
def closed_stderr():
    sys.stderr.close()
    print("after")


@case
def closed_descriptors():
    sys.stdout.flush()
    os.close(2)
    with open("data.txt", "w") as file:  # gets the number that the error stream had
        print(file.fileno())
        sys.stdout.flush()
        file.write("data")


@case
def no_stderr():
    sys.stderr = None
    print("after")


@case
def no_stderr_and_an_exception():
    sys.stderr = None
    raise ValueError("nobody sees it")


@case
def no_stdout():
    sys.stdout = None
    print("nothing")


@case
def captured_stderr():
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()) as text:
        print("inside", file=sys.stderr)
    print(repr(text.getvalue()))


@case
def replaced_stdout():
    sys.stdout = open("text.txt", "w")  # noqa: SIM115
    print("to the file")


@case
def deep_recursion():
    def down(n):
        return down(n + 1)

    try:
        down(0)
    except RecursionError as error:
        print(error)


@case
def generator_left_open():
    def numbers():
        try:
            yield 1
        finally:
            print("closed")

    global kept
    kept = numbers()
    print(next(kept))


if __name__ == "__main__":
    CASES[sys.argv[1]]()
