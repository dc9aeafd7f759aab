"""Text fields whose keys act in the order in which they were pressed."""

from __future__ import annotations

from textual import events
from textual.widget import Widget
from textual.widgets import Input, TextArea


class LineField(Input):
    """A field of one line."""

    async def on_key(self, event: events.Key) -> None:
        """Handle its own keys in order with the letters."""
        await _press(self, event)


class TextField(TextArea):
    """A field of many lines."""

    async def on_key(self, event: events.Key) -> None:
        """Handle its own keys in order with the letters."""
        await _press(self, event)


async def _press(field: Widget, event: events.Key) -> None:
    """Run the field's binding of a key now. One that does nothing here is left to the screen.

    Textual runs it once the key has passed every widget around: letters that came together with a backspace, over a
    slow connection or from a program that expands text, would be inserted before it. Priority bindings would run ahead
    of letters that are still queued.
    """
    bound = None if event.is_printable else field.screen.active_bindings.get(event.key)
    if bound is not None and bound.node is field:
        event.prevent_default()
        if await field.app.run_action(bound.binding.action, field):
            event.stop()
