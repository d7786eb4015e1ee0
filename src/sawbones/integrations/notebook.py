"""The magic of notebooks, after `%load_ext sawbones`:

%%sawbones               the cell is recorded; a small picture of it stands below
%sawbones train(model)   the same for one statement
%sawbones on             recorded from here on, cell by cell, with a picture below each that trains
%sawbones off            until here
%sawbones                the picture of what is recorded; also: %sawbones diagnose, %sawbones show
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from sawbones.schema.errors import SawbonesError
from sawbones.watching import Watch, watch

try:
    from IPython.core.magic import Magics, line_cell_magic, magics_class
    from IPython.display import display
except ImportError as error:
    raise SawbonesError(
        "sawbones.integrations.notebook needs IPython: pip install ipykernel"
    ) from error

WORDS = ("on", "off", "diagnose", "show")


@magics_class
class SawbonesMagics(Magics):  # type: ignore[misc]
    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._watch: Watch | None = None
        self._going_on = False
        self._steps_shown = 0

    @line_cell_magic  # type: ignore[untyped-decorator]
    def sawbones(self, line: str, cell: str | None = None) -> Any:
        """Record the training of this cell; `%sawbones on` for all cells. See
        docs/how-to/notebooks.md.
        """
        said = line.strip()
        if cell is not None:
            return self._record(cell, Path(said) if said else None, marked=True)
        word, _, rest = said.partition(" ")
        if word not in WORDS and said:
            return self._record(said, None, marked=False)
        if word == "on":
            return self._begin(Path(rest.strip()) if rest.strip() else None)
        if self._watch is None:
            print("nothing is recorded yet: %sawbones on, or %%sawbones above a cell")
            return None
        if word == "off":
            self._end()
        if word == "show":
            return self._watch.show()
        return self._watch.diagnose() if word == "diagnose" else self._watch

    def _begin(self, out: Path | None) -> None:
        self._end()
        self._watch, self._going_on, self._steps_shown = watch(out=out, quiet=True), True, 0
        self.shell.events.register("post_run_cell", self._after_cell)
        print(f"recording into {self._watch.folder}; until %sawbones off")

    def _end(self) -> None:
        if self._going_on and self._watch is not None:
            self._going_on = False
            self.shell.events.unregister("post_run_cell", self._after_cell)
            self._watch.close()

    def _after_cell(self, result: Any) -> None:
        if self._watch is not None and self._watch.step > self._steps_shown:
            self._steps_shown = self._watch.step
            display(self._watch)

    def _record(self, text: str, out: Path | None, marked: bool) -> None:
        """The picture comes whether the cell ends or fails; its exception is the cell's own."""
        self._end()
        self._watch = watch(out=out, quiet=True)
        try:
            with self._watch:
                self._execute(text, marked)
        finally:
            display(self._watch)

    def _execute(self, text: str, marked: bool) -> None:
        """As the shell would have done it: the lines are the cell's, its last value is shown."""
        shell = self.shell
        # The first line of the cell was the magic; IPython drops empty lines.
        whole = f"# %%sawbones\n{text}" if marked and not text.startswith("%%") else text
        source = shell.transform_cell(whole)
        number = len(shell.user_ns["In"]) - 1  # execution_count may be that of the next cell
        name = shell.compile.cache(source, number, raw_code=whole)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), shell.user_ns)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
            if value is not None and not source.rstrip().endswith(";"):
                display(value)


def load_ipython_extension(shell: Any) -> None:
    shell.register_magics(SawbonesMagics)
