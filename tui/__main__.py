"""`python -m tui`: the same as the `chatctx` command."""

from tui.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
