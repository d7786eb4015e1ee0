"""The command: `sawbones ...` and `python -m sawbones ...`."""

import sys


def main() -> None:
    try:
        from sawbones.cli.main import main as command
    except KeyboardInterrupt:
        if sys.argv[1:2] == ["run"]:  # ends as its script would have: by the signal
            sys.excepthook = lambda *_: None
            raise
        exec("pass")  # clears CPython's note of the interrupt: see forget_interrupt in cli/guard.py
        print("sawbones: interrupted", file=sys.stderr)
        raise SystemExit(4) from None
    command()


if __name__ == "__main__":
    main()
