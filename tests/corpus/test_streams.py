"""Every recorded stream, served from loopback to our adapters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.corpus import corpus_root, recordings
from tests.messages import user
from tests.providers.collect import Answer, collect
from tests.providers.replay import Answer as Served
from tests.providers.replay import replay_server
from tui.messages import Request
from tui.providers.config import ProviderConfig
from tui.providers.registry import make_provider

pytestmark = pytest.mark.corpus

REQUEST = Request("replay", "recorded", (user("hello"),), max_output=1000)


def files() -> list[str]:
    """Names of all recordings, for the test ids; one stand-in where there is no corpus."""
    try:
        root = corpus_root() / "streams"
    except (pytest.skip.Exception, pytest.fail.Exception):
        return ["missing"]
    paths = [*root.glob("*/*.sse"), *root.glob("*/*.chunks.txt")]
    return sorted(str(path.relative_to(root)) for path in paths)


async def play(body: bytes, dialect: recordings.Dialect) -> Answer:
    """Serve `body` in pieces of odd sizes, read by the adapter of `dialect`."""
    async with replay_server() as server:
        server.answers.append(Served([body[at : at + 1013] for at in range(0, len(body), 1013)]))
        spoken = "openai-chat" if dialect == "other" else dialect  # a foreign format must not confuse the adapter
        config = ProviderConfig("replay", spoken, f"{server.url}/v1")
        provider = make_provider("replay", config)
        try:
            return await collect(provider, REQUEST)
        finally:
            await provider.close()


@pytest.mark.parametrize("name", files())
async def test_a_recording_reads_as_recorded(name: str, say: Callable[[str], None]) -> None:
    for body, want in recordings.answers(corpus_root() / "streams" / name):
        got = await play(body, want.dialect)

        counts = f"{len(got.text):>5} text {len(got.thoughts):>5} reasoning {len(got.calls):>2} calls"
        end = "failed" if got.error else got.end.raw if got.end else "interrupted"
        say(f"{name[:72]:<72} {want.dialect:<16} {counts}  {end}")

        assert got.text == want.text
        assert got.thoughts == want.reasoning
        assert got.refusal == want.refusal
        assert [(call.name, call.arguments) for call in got.calls.values()] == want.calls
        metas = [item for items in got.meta.values() for item in items]
        secrets = [meta.signature or meta.redacted or meta.encrypted for meta in metas]
        assert [secret for secret in secrets if secret] == want.signatures
        usage = got.usage
        assert (usage.input_total if usage else None, usage.output_total if usage else None) == (
            want.input,
            want.output,
        )
        assert (got.error is not None) == want.failed
        if not want.failed:
            assert (got.end.raw if got.end else None) == want.ended
        assert all(call.id for call in got.calls.values())
