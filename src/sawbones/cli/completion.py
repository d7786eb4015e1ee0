"""sawbones completion SHELL: a script with all commands, flags, faults and trials in it, so that
the Tab key starts no Python.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re

from sawbones.cli.arguments import Parser

DESCRIPTION = """Tab completion. Put it where your shell looks:

  bash   sawbones completion bash > ~/.local/share/bash-completion/completions/sawbones
  zsh    eval "$(sawbones completion zsh)"                  # in ~/.zshrc, after compinit
  fish   sawbones completion fish > ~/.config/fish/completions/sawbones.fish"""

SHELLS = ("bash", "zsh", "fish")
_WITH_ACTIONS = {"audit": ("leaks", "shift", "tokens", "data"), "lab": ("list", "run", "bench")}

_BASH = """_sawbones() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}:$current" in
{cases}
        esac
    fi
    COMPREPLY=( $(compgen -W "$words" -- "$current") )
}}
complete -o bashdefault -o default -F _sawbones sawbones
"""


def run(args: list[str]) -> None:
    p = Parser("sawbones completion", DESCRIPTION)
    p.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    given = p.parse_args(args)
    print(script(given.shell), end="")
    raise SystemExit(0)


def script(shell: str) -> str:
    from sawbones.cli.main import COMMANDS

    flags = {command: _flags(command) for command in COMMANDS}
    words = _words()
    if shell == "fish":
        return _fish(COMMANDS, flags, words)
    cases = []
    for command in COMMANDS:
        cases.append(f'            {command}:-*) words="{" ".join(flags[command])}" ;;')
        if command in words:
            cases.append(f'            {command}:*) words="{" ".join(words[command])}" ;;')
    bash = _BASH.format(commands=" ".join(COMMANDS), cases="\n".join(cases))
    return bash if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{bash}"


def _fish(
    commands: dict[str, str], flags: dict[str, list[str]], words: dict[str, list[str]]
) -> str:
    lines = []
    for command, line in commands.items():
        told = line.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c sawbones -n __fish_use_subcommand -f -a {command} -d '{told}'")
        seen = f"-n '__fish_seen_subcommand_from {command}'"
        lines += [f"complete -c sawbones {seen} -l {flag[2:]}" for flag in flags[command]]
        if command in words:
            lines.append(f"complete -c sawbones {seen} -a '{' '.join(words[command])}'")
    return "\n".join(lines) + "\n"


def _flags(command: str) -> list[str]:
    """As the command's own help lists them."""
    calls: list[list[str]] = [[], *([action] for action in _WITH_ACTIONS.get(command, ()))]
    page = io.StringIO()
    module = importlib.import_module(f"sawbones.cli.{command}")
    for call in calls:
        with contextlib.redirect_stdout(page), contextlib.suppress(SystemExit):
            module.run([*call, "--help"])
    found = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", page.getvalue(), flags=re.MULTILINE)
    return sorted({*found, "--help"})


def _words() -> dict[str, list[str]]:
    """What stands behind a command that is no file."""
    from sawbones.cli.main import COMMANDS
    from sawbones.schema import faults
    from sawbones.trials.menu import ITEMS

    named = list(faults())
    others = {name: list(actions) for name, actions in _WITH_ACTIONS.items()}
    trials = [item.name for item in ITEMS]
    helped = [name for name in COMMANDS if name != "help"]
    return {
        **others,
        "explain": named,
        "lab": [*others["lab"], *named],
        "try": trials,
        "help": [*helped, *named],
        "completion": list(SHELLS),
    }
