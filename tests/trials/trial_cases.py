"""Every experiment on a script with its fault and on one without: observed once, then re-run in
real child processes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sawbones.observe.options import Options, diagnosing
from sawbones.schema import Finding, Run, Verdict
from sawbones.trials import trial
from sawbones.trials.bench import Bench, Patient

SCRIPTS = Path(__file__).resolve().parent / "scripts"
SOFTMAX = {"file": "classifier.py", "classes": 5, "ndim": 2}


def line_of(script: str, text: str) -> int:
    lines = (SCRIPTS / script).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


@dataclass(frozen=True)
class Case:
    experiment: str
    script: str
    fault: str
    outcome: str
    params: dict[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.experiment}-{self.script}-{self.fault}-{self.outcome}"


def pair(
    which: str, script: str, fault: str, twin: str = "none", refuted: str = "refuted", **params: Any
) -> tuple[Case, Case]:
    return Case(which, script, fault, "confirmed", params), Case(
        which, script, twin, refuted, params
    )


SOFTMAX["line"] = line_of("classifier.py", "torch.softmax(logits, dim=1)")
LOSS_OF_CLASSES = {
    "file": "classifier.py",
    "line": line_of("classifier.py", "loss = F.cross_entropy(logits"),
    "dim": 1,
}
LOG = {
    "name": "log",
    "file": "classifier.py",
    "line": line_of("classifier.py", "torch.log(torch.softmax"),
}
SIGMOID = {
    "file": "classifier.py",
    "line": line_of("classifier.py", "torch.sigmoid(logits)"),
    "tail": [5],
}
CUT_AT = line_of("cut.py", "LIMIT = 8")
AT_LINE = {
    "module": None,
    "op": "__getitem__",
    "file": "order.py",
    "line": line_of("order.py", "self.tokens.weight[ids]"),
    "time_dim": 1,
    "shape": [32, 6, 32],
}

CASES: tuple[Case, ...] = (
    *pair("learning_rate_tenth", "classifier", "lr_high"),
    *pair("learning_rate_raised", "classifier", "lr_low", "lr_high", factor=100.0),
    *pair("gradient_turned", "classifier", "maximised"),
    *pair("zero_grad_added", "classifier", "no_zero_grad"),
    *pair("mean_for_sum", "classifier", "sum", count=32),
    *pair("softmax_removed", "classifier", "double_softmax", refuted="open", **SOFTMAX),
    Case("softmax_removed", "classifier", "shares_as_scores", "confirmed", LOSS_OF_CLASSES),
    *pair(
        "sigmoid_removed",
        "classifier",
        "double_sigmoid",
        "single_sigmoid",
        refuted="open",
        **SIGMOID,
    ),
    *pair("domain_guarded", "classifier", "log_of_zero", refuted="open", **LOG),
    *pair("clip_on", "classifier", "exploding"),
    *pair("train_mode", "classifier", "train_in_eval", "modes_right"),
    *pair("eval_mode", "classifier", "eval_in_train", "modes_right"),
    *pair("dropout_off", "classifier", "dropout_heavy"),
    *pair("weight_decay_off", "classifier", "decay_heavy"),
    *pair("skip_batch", "classifier", "bad_batch", steps=[20]),
    Case("skip_batch", "classifier", "unseeded", "open", {"steps": [20]}),
    *pair("same_seed_twice", "classifier", "unseeded"),
    *pair("deterministic_algorithms", "classifier", "kernel", "unseeded"),
    *pair("overfit_one_batch", "classifier", "labels_random", "lr_none"),
    *pair("tiny_dataset", "classifier", "labels_random", "lr_none"),
    *pair("input_independent_baseline", "classifier", "input_ignored"),
    *pair("shuffled_labels", "classifier", "labels_random"),
    *pair("autocast_off", "half", "float16", "bfloat16"),
    *pair("loss_scale_on", "half", "float16", "bfloat16"),
    *pair("float64", "half", "float16", "bfloat16"),
    *pair("causality", "tokens", "leak"),
    *pair("padding_invariance", "tokens", "pad"),
    *pair("batch_independence", "tokens", "mixed"),
    *pair("position_permutation", "tokens", "no_positions"),
    *pair("label_shift_scan", "tokens", "unshifted"),
    *pair("loss_at_initialisation", "tokens", "loud"),
    *pair("gradient_check", "custom", "wrong", "right"),
    Case("gradient_check", "custom", "reversed", "open"),
    *pair("accumulation_against_one_batch", "accumulate", "unscaled", "scaled"),
    Case("accumulation_against_one_batch", "accumulate", "divided", "refuted"),
    *pair("gradient_until_step", "accumulate", "unclipped", "divided_unclipped"),
    *pair("input_standardised", "evaluated", "raw", "right"),
    *pair("draws_held", "evaluated", "scrambled", "right"),
    *pair("evaluation_batch_size", "evaluated", "mean_of_means", "right", loaders=[1]),
    *pair("waiting_measured", "evaluated", "slow", "right"),
    *pair("classes_weighed", "evaluated", "rare", "rare_slow", rare=[1]),
    *pair(
        "limit_raised",
        "cut",
        "early",
        "noise",
        limit=8,
        numbers=[{"file": "cut.py", "line": CUT_AT, "old": 8, "new": 20}],
    ),
    *pair(
        "positions_added",
        "order",
        "blind",
        "placed",
        module="tokens",
        time_dim=1,
        shape=[32, 6, 32],
    ),
    Case("positions_added", "order", "table", "confirmed", AT_LINE),
    *pair("resume_equivalence", "resume", "model_only", "everything"),
    Case("resume_equivalence", "resume", "by_flag", "refuted"),
    *pair("resumed_run", "resume", "model_only", "everything"),
    *pair("default_moments", "classifier", "eps_large"),
    *pair("synthetic_task", "classifier", "labels_random", "lr_none"),
    *pair("short", "resume", "model_only", "everything"),
    Case("resume_equivalence", "resume", "never", "open"),
    *pair("one_rank_against_two", "ranks", "bypassed", "wrapped"),
)


class Hospital:
    """Runs cases side by side, one per core; observations that several cases share are made
    once.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="experiments-"))
        self._lock = threading.Lock()
        self._observed: dict[tuple[str, str], Future[Run]] = {}
        self._pool = ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2))
        # In the order of the tests, so that each waits for little more than its own case.
        self._waiting = {
            case: self._pool.submit(self._examine, case) for case in dict.fromkeys(cases)
        }

    def verdict(self, case: Case) -> Verdict:
        if case not in self._waiting:
            self._waiting[case] = self._pool.submit(self._examine, case)
        return self._waiting[case].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        shutil.rmtree(self._root)

    def _examine(self, case: Case) -> Verdict:
        ranks = 2 if case.script == "ranks" else 1
        with Bench(Patient(f"{case.script}.py", (case.fault,), SCRIPTS, ranks), 240) as bench:
            run = self._observe(case, bench)
            assert run.num_steps, f"{case}: {run.ending}\n{bench.log_tail}"
            finding = Finding("loop.no-step", "likely", 0.5, str(case), params=case.params)
            return trial(case.experiment)(bench, finding, run)

    def _observe(self, case: Case, bench: Bench) -> Run:
        key = (case.script, case.fault)
        with self._lock:
            mine = key not in self._observed
            future = self._observed.setdefault(key, Future())
        if mine:
            plain = Options(deep_steps=(), deep_every=0, full_every=10, batch_samples=0)
            options = diagnosing() if case.script == "tokens" else plain
            try:
                future.set_result(
                    bench.execute(options, run_folder=self._root / f"{case.script}-{case.fault}")
                )
            except BaseException as error:
                future.set_exception(error)
        return future.result()
