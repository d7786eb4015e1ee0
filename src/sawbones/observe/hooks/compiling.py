"""torch.compile while diagnosing: everything stays as the script built it, but runs eagerly, so
that deep steps can look inside.

Under `sawbones run` compiled code stays compiled: there the run matters, and its numbers must not
change by a bit.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    _give_way_to_what_is_compiled(recorder, patches)
    if not recorder.options.eager or not hasattr(torch.compiler, "set_stance"):
        return

    def make(original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            if recorder.active and "compile_off" not in recorder.facts:
                recorder.guard("compile", _stay_eager, recorder, patches)
            return original(*args, **kwargs)

        return compile

    patches.replace(
        torch, "compile", make
    )  # Module.compile and the decorator come through here too


def _give_way_to_what_is_compiled(recorder: Recorder, patches: Patches) -> None:
    """A function that was compiled before it is watched would be compiled again for the mode and
    the hooks of a deep step. torch asks this before it looks whether what it has still fits. In
    torch 2.6 it is also the only word before the compiler notes the modes of a first call: what
    leaves later fails the script.
    """
    done: list[bool] = []

    def give_way(original: Any) -> Any:
        def _callback_from_stance(callback: Any) -> Any:
            found = original(callback)
            if found not in (None, False) and recorder.deep is not None and recorder.is_host():
                recorder.guard("deep", recorder.deep.give_way)
            return found

        return _callback_from_stance

    def replace() -> None:
        compiler = sys.modules.get("torch._dynamo.eval_frame")
        if compiler is not None and not done:
            done.append(True)
            patches.replace(compiler, "_callback_from_stance", give_way)

    def make(original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if recorder.active:
                recorder.guard("compile", replace)
            return made

        return compile

    replace()
    if not done:  # the first to compile brings the compiler in
        patches.replace(torch, "compile", make)


def _stay_eager(recorder: Recorder, patches: Patches) -> None:
    # brings in the compiler, a second of imports: only for those who compile
    stance = torch.compiler.set_stance("force_eager")
    patches.on_exit(lambda: stance.__exit__(None, None, None))  # to the one before
    wrapper = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)
    if wrapper is not None:  # its own __call__ only adds a warning about the hooks of deep steps
        patches.replace(
            wrapper,
            "__call__",
            lambda _: (
                lambda module, *args, **kwargs: torch.nn.Module.__call__(module, *args, **kwargs)
            ),
        )
    recorder.facts["compile_off"] = True
