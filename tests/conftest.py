"""What every test of the suite shares."""

from __future__ import annotations

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code. The bench measures time.
settings.register_profile("chatctx", deadline=None)
settings.load_profile("chatctx")
