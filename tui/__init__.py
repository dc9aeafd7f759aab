"""chatctx: a terminal chat client whose context numbers are true."""

__version__ = "0.1.0"
