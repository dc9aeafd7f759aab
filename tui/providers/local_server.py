"""The child process of the embedded provider: llama.cpp's HTTP server on loopback, until its parent ends.

Run as `python -m tui.providers.local_server`, with one JSON object on the first line of stdin. Writes one JSON line to
stdout, `{"url": ...}` or `{"error": ...}`. The process ends when stdin is closed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def start(options: dict[str, Any]) -> Any:
    """Load the model and return the running server. Raises OSError, ImportError, RuntimeError or ValueError."""
    gguf = Path(options["gguf"])
    with gguf.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError("it is not a GGUF file")

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.model_alias = {options["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = options["n_ctx"]
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = 0
    params.ui = False
    params.warmup = False
    if options.get("api_key"):
        params.api_keys = [options["api_key"]]
    if options.get("template"):
        params.use_jinja = True
        params.chat_template = Path(options["template"]).read_text(encoding="utf-8")
    return xllamacpp.Server(params)


def main() -> int:
    """Serve until stdin closes; returns the exit code."""
    # The answer goes to the real stdout; the library's own lines go to stderr.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    options = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN if name == signal.SIGINT else signal.SIG_DFL)
    try:
        server = start(options)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answer, flush=True)
        return 1
    print(json.dumps({"url": server.listening_address}), file=answer, flush=True)
    sys.stdin.read()
    # The server's destructor would wait for running answers, which nobody reads any more.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
