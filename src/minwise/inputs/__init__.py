"""Input formats: one module per format, and the sources that read them."""

from typing import TYPE_CHECKING

from minwise._internal.lazy import lazy_attributes

if TYPE_CHECKING:
    from minwise.inputs.open_sources import Files
    from minwise.inputs.source import Fault

__all__ = ["Fault", "Files"]

if not TYPE_CHECKING:  # or a type checker would accept any name
    # Imported on first use: together the formats take a tenth of a second.
    __getattr__, __dir__ = lazy_attributes(globals(), {"Fault": "source", "Files": "open_sources"})
