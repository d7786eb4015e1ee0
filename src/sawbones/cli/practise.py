"""sawbones practise: exercises, hints, graded answers and the history of them."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.cli import values
from sawbones.cli.arguments import Parser, existing_script, usage_error
from sawbones.schema import LAYERS
from sawbones.schema.errors import SawbonesError

if TYPE_CHECKING:
    from sawbones.practise.grading import Line
    from sawbones.practise.records import Record

DESCRIPTION = """Learn to debug training runs: a broken script, a colleague's report, and a graded answer.

begin    a fresh exercise in a folder of its own (the default): sawbones practise --level 3
hint     one hint in the script's own names; costs 5 points
answer   grade answer.toml, or what the flags say, by running it
score    your graded answers so far, by layer
drill    questions, curves to be named, or numbers to work out: sawbones practise drill questions
classic  one of five classic broken runs, as a folder and a tarball that run without Sawbones
write    backward passes, losses, optimizers and collate functions by hand: sawbones practise write

Levels: 1 an error names the line; 2 the curve gives it away; 3 it has to be isolated; 4 two faults,
or none; 5 three, or none. Nothing in the folder names the answer; everything works offline."""
ACTIONS = ("begin", "hint", "answer", "score", "drill", "write", "classic")
DRILLS = ("questions", "curves", "numbers")
HEALTHY = "none"


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones practise", DESCRIPTION)
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)
    begin = actions.add_parser("begin", help="a fresh exercise (the default)")
    begin.add_argument("--level", type=values.whole(1, 5), default=2, help="1 to 5 (default 2)")
    begin.add_argument("--layer", choices=LAYERS, help="only faults of this layer")
    begin.add_argument(
        "--minutes", type=values.above_zero, default=20.0, help="time to aim for (default 20)"
    )
    begin.add_argument(
        "--seed",
        type=values.whole(0, values.LARGEST_SEED),
        help="the same exercise again (default: a new one)",
    )
    begin.add_argument("--into", metavar="SCRIPT", help="put the fault into a copy of your script")
    begin.add_argument(
        "--folder", type=values.folder_to_make, help="where (default: exercise-1, -2, ...)"
    )
    _with_folder(actions.add_parser("hint", help="one more hint, for 5 points"))
    answer = actions.add_parser("answer", help="grade an answer")
    _with_folder(answer)
    answer.add_argument("--fault", action="append", help="a fault id, or none for a healthy script")
    answer.add_argument("--line", action="append", type=values.whole(1), help="where it is")
    answer.add_argument("--because", default="", help="why, in a sentence or two")
    answer.add_argument("--claim", action="append", help="what you measured: 'loss@last > 1.2'")
    answer.add_argument("--command", default="", help="how to reproduce it")
    answer.add_argument("--fix", default="", metavar="FILE", help="a patch, or the mended script")
    answer.add_argument(
        "--test", default="", metavar="FILE", help="a pytest file that tells the two apart"
    )
    answer.add_argument(
        "--report", default="", metavar="FILE", help="a text of at most 500 words, or a file of it"
    )
    answer.add_argument(
        "--html", type=values.file_to_write, metavar="FILE", help="write the report card as a page"
    )
    answer.add_argument("--grammar", action="store_true", help="how claims are written, and end")
    actions.add_parser("score", help="your graded answers so far")
    drill = actions.add_parser("drill", help="questions, curves or numbers, one after the other")
    drill.add_argument("kind", choices=DRILLS)
    drill.add_argument("--count", type=values.whole(1), default=10, help="how many (default 10)")
    drill.add_argument("--seed", type=values.whole(0, values.LARGEST_SEED), help="the same again")
    drill.add_argument("--show", action="store_true", help="print them with their answers, and end")
    write = actions.add_parser("write", help="write a piece by hand, graded on hidden inputs")
    write.add_argument("assignment", nargs="?", help="which (default: the next one for you)")
    write.add_argument("--list", action="store_true", help="what can be asked, and end")
    write.add_argument("--grade", action="store_true", help="grade what you have written")
    write.add_argument("--folder", help="where (default: write-1, ...; to grade: the latest)")
    write.add_argument(
        "--seed", type=values.whole(0, values.LARGEST_SEED), help="the same hidden inputs again"
    )
    classic = actions.add_parser("classic", help="a classic broken run that repeats bit for bit")
    classic.add_argument("name", nargs="?", help="which (default: list them)")
    classic.add_argument("--folder", help="where (default: classic-NAME)")
    return p


def _with_folder(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--folder", help="the folder of the exercise (default: this one, or the latest exercise-N)"
    )


def run(args: list[str]) -> None:
    if not args or args[0] not in (*ACTIONS, "-h", "--help"):
        args = ["begin", *args]
    given = parser().parse_args(args)
    act = {
        "begin": _begin,
        "hint": _hint,
        "answer": _answer,
        "score": _score,
        "drill": _drill,
        "write": _write,
        "classic": _classic,
    }[given.action]
    try:
        act(given)
    except SawbonesError as error:
        usage_error(str(error))
    raise SystemExit(0)


def _say(text: str) -> None:
    print(f"sawbones: {text}", file=sys.stderr)


def _begin(given: argparse.Namespace) -> None:
    from sawbones.practise.starting import begin, begin_into

    folder = _empty(given, "exercise")
    seed = _seed(given)
    _say("making an exercise and running it once, to see that it shows")
    if given.into:
        script = existing_script(given.into)
        made, _ = begin_into(script, folder, seed, given.level, given.layer, given.minutes)
    else:
        made, _ = begin(folder, seed, given.level, given.layer, given.minutes)
    name = made.broken.file
    print(f"{folder}/{name:<14} the script; read REPORT.md beside it first")
    print(f"{folder}/answer.toml    fill it in within {given.minutes:g} minutes")
    print(f"A hint:   sawbones practise hint --folder {folder}")
    print(f"Grade it: sawbones practise answer --folder {folder}")
    print(f"The same exercise again: {_again(given, seed)}")


def _again(given: argparse.Namespace, seed: int) -> str:
    parts = [f"sawbones practise --seed {seed} --level {given.level}"]
    parts += [f"--layer {given.layer}"] if given.layer else []
    parts += [f"--into {given.into}"] if given.into else []
    return " ".join(parts)


def _empty(given: argparse.Namespace, stem: str) -> Path:
    """The folder that was asked for, or the first of exercise-1, exercise-2, ... that is free."""
    number = 1
    while Path(f"{stem}-{number}").exists():
        number += 1
    folder = Path(given.folder or f"{stem}-{number}")
    if folder.is_dir() and any(folder.iterdir()):
        usage_error(f"{folder} is not empty: name another one with --folder")
    return folder


def _seed(given: argparse.Namespace) -> int:
    return given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)


def _folder(given: argparse.Namespace) -> Path:
    from sawbones.practise.records import MARK

    return _latest(given, "exercise", MARK)


def _latest(given: argparse.Namespace, stem: str, mark: str) -> Path:
    if given.folder:
        return Path(given.folder)
    if Path(mark).exists():
        return Path()
    found = [path.parent for path in Path().glob(f"{stem}-*/{mark}")]
    return max(found, key=lambda path: path.stat().st_mtime, default=Path())


def _hint(given: argparse.Namespace) -> None:
    from sawbones.practise import records
    from sawbones.practise.guiding import NUM_HINTS, hint

    folder = _folder(given)
    record = records.of_folder(folder)
    if record.hints >= NUM_HINTS:
        print(f"There are {NUM_HINTS} hints, and you have had them all.")
        return
    record = records.take_hint(record)
    print(
        f"Hint {record.hints} of {NUM_HINTS} (5 points): {hint(record.exercise(folder), record.hints)}"
    )


def _answer(given: argparse.Namespace) -> None:
    from sawbones.practise import claims, records
    from sawbones.practise.answers import answer
    from sawbones.practise.examining import examine
    from sawbones.practise.expert import shown, walk
    from sawbones.practise.grading import grade, total
    from sawbones.practise.guiding import model_answer
    from sawbones.practise.report_card import Graded, page

    if given.grammar:
        print((claims.__doc__ or "").strip())
        return
    folder = _folder(given)
    record = records.of_folder(folder)
    asked = {name: getattr(given, name) for name in ("fault", "line", "because", "command")}
    asked |= {"claims": given.claim, "fix": given.fix, "test": given.test, "report": given.report}
    named = answer(folder, asked)
    exercise = record.exercise(folder)
    began = time.monotonic()
    trials = examine(exercise, named, folder, _say)
    lines = grade(exercise, named, trials, record.hints)
    points = total(lines)
    minutes = record.minutes_taken - (time.monotonic() - began) / 60  # grading takes none of them
    print(_card(lines, points, record, minutes), flush=True)
    records.remember(_row(record, exercise.faults, lines, points, minutes))
    took = time.monotonic() - began
    steps = walk(exercise, folder, _say)
    told = model_answer(exercise, trials.broken)
    print(f"{shown(steps)}\n{told}")
    if given.html:
        graded = Graded(exercise, record, named, lines, steps, minutes, told)
        Path(given.html).write_text(page(graded), encoding="utf-8")
        print(f"wrote {given.html}")
    print(f"Graded in {took:.0f} s. Your progress: sawbones practise score")


def _card(lines: list[Line], points: float, record: Record, minutes: float) -> str:
    rows = [f"{line.points:>6g} / {line.most:<3g} {line.part}: {line.why}" for line in lines]
    took = f"{minutes:.0f} of {record.minutes:g} minutes"
    return "\n".join([f"{points:g} of 100 points, {took}", "", *rows, ""])


def _row(
    record: Record, faults: tuple[str, ...], lines: list[Line], points: float, minutes: float
) -> dict[str, Any]:
    return {
        "when": time.time(),
        "seed": record.seed,
        "level": record.level,
        "layers": sorted({one.partition(".")[0] for one in faults}) or [HEALTHY],
        "points": points,
        "minutes": round(minutes, 1),
        "hints": record.hints,
        "lines": {line.part: line.points for line in lines},
    }


def _score(given: argparse.Namespace) -> None:
    from sawbones.practise.progress import page, written
    from sawbones.practise.records import WRITTEN, history

    print(page(list(history())))
    for line in written(list(history(WRITTEN))):
        print(line)


def _drill(given: argparse.Namespace) -> None:
    """Think, press Enter, compare, and say whether it was right; what was not comes again first."""
    from sawbones.practise import drills, records

    seed = _seed(given)
    past = records.history(records.DRILLS)
    deck = drills.in_order(drills.cards(given.kind, seed), past, seed)[: given.count]
    if given.show:
        print("\n\n".join(f"{c.ask}\n  {c.answer}\n{c.more}".rstrip() for c in deck))
        return
    right = 0
    for number, card in enumerate(deck, 1):
        print(f"\n{number} of {len(deck)}  {card.ask}")
        began = time.monotonic()
        try:
            input("Your answer, then Enter: ")
            took = time.monotonic() - began
            print(f"{card.answer}\n{card.more}".rstrip())
            said = input("Was it right? [y/n] ").strip().lower().startswith("y")
        except EOFError:
            break
        known = drills.is_known(card, said, took)
        if said and not known:
            print(f"That took {took:.0f} s; to be named within {card.seconds:g}. It comes again.")
        right += known
        records.remember({"card": card.id, "right": known, "when": time.time()}, records.DRILLS)
    print(f"\n{right} of {len(deck)} right")


def _write(given: argparse.Namespace) -> None:
    from sawbones.practise import records
    from sawbones.practise.writing.assignments import assignment, assignments
    from sawbones.practise.writing.beginning import begin, next_one

    if given.list:
        for one in assignments().values():
            print(f"{one.name:<15} {one.minutes:>3g} minutes  {one.about}")
        return
    if given.grade:
        _grade_written(given)
        return
    past = list(records.history(records.WRITTEN))
    asked = assignment(given.assignment) if given.assignment else next_one(past)
    folder = _empty(given, "write")
    print(f"{begin(asked, folder)}    fill it in within {asked.minutes:g} minutes")
    print(f"Grade it: sawbones practise write --grade --folder {folder}")


def _grade_written(given: argparse.Namespace) -> None:
    from sawbones.practise import records
    from sawbones.practise.writing.beginning import MARK, begun
    from sawbones.practise.writing.judging import judge

    folder = _latest(given, "write", MARK)
    asked, minutes = begun(folder)
    seed = _seed(given)
    judged = judge(asked, folder / asked.file, seed)
    points = judged.points(minutes, asked.minutes)
    late = ", over the limit" if minutes > asked.minutes else ""
    print(f"{points:g} of 100 points, {minutes:.0f} of {asked.minutes:g} minutes{late}")
    if judged.passed:
        print("every term is right on all hidden inputs")
    for line in judged.first_wrong:
        print(f"  {line}")
    if judged.mistake:
        print(f"  These numbers come out with this mistake: {judged.mistake}")
    print(f"Read: sawbones explain {asked.page}. The same inputs again: --seed {seed}")
    row = {"assignment": asked.name, "passed": judged.passed and not late, "points": points}
    records.remember({**row, "minutes": round(minutes, 1), "when": time.time()}, records.WRITTEN)


def _classic(given: argparse.Namespace) -> None:
    from sawbones.practise.classics import CLASSICS, classic, write

    if not given.name:
        for one in CLASSICS.values():
            print(f"{one.name:<32} {one.shows}")
        return
    chosen = classic(given.name)
    folder = Path(given.folder or f"classic-{chosen.name}")
    if folder.is_dir() and any(folder.iterdir()):
        usage_error(f"{folder} is not empty: name another one with --folder")
    for line in write(chosen, folder):
        print(line)
