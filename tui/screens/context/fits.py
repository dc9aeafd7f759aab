"""`f` in `/context`: the models that this conversation fits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.context.usage.limits import ModelLimits
from tui.screens.base import BACK, Panel, clickable
from tui.text.clean import error_line
from tui.views.models import fit_line, fits

if TYPE_CHECKING:
    from tui.chat.workspace import Workspace
    from tui.context.usage.usage import ContextUsage

log = logging.getLogger(__name__)


class FitsPanel(Panel[None]):
    """A list to read."""

    DEFAULT_CSS = """
    FitsPanel OptionList {
        height: auto; max-height: 1fr; border: none; padding: 0; background: transparent; scrollbar-size-vertical: 1;
    }
    FitsPanel Static { height: auto; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,f", "close", "back", id="fits.close", show=False),
    ]

    def __init__(self, usage: ContextUsage, workspace: Workspace) -> None:
        super().__init__()
        self.usage = usage
        self.workspace = workspace
        self._models: list[tuple[str, ModelLimits | None]] = []

    def compose(self) -> ComposeResult:
        """The models, then a legend."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "Fits where?"
            panel.border_subtitle = clickable(self, BACK)
            yield OptionList(compact=True)
            yield Static("asking the servers …", markup=False)

    def on_mount(self) -> None:
        """Show the current model at once, the others when they are known."""
        self.query_one(OptionList).focus()
        self._load()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new width."""
        self._show()

    @work(exit_on_error=False)
    async def _load(self) -> None:
        note = self.query_one(Static)
        try:
            models = await self.workspace.models()
        except Exception as error:
            log.warning("models could not be listed", exc_info=True)
            note.update(f"The models could not be listed: {error_line(error)}")
            return
        self._models = [(f"{provider}/{info.id}", info.limits) for provider, info in models]
        self._show()
        note.update("Counted for the current model; others may differ by some percent.")

    def _show(self) -> None:
        width = self.list_width
        options = self.query_one(OptionList)
        options.clear_options()
        rows = fits(self.usage, self._models)
        options.add_options(Option(fit_line(fit, width)) for fit in rows)
        options.highlighted = next((index for index, fit in enumerate(rows) if fit.current), 0)
