"""Final answers: where a text gives one, what it says, and why there is none."""

from rolloutlib.answers._extract import extract
from rolloutlib.answers._extraction import Extraction, Rule, Status
from rolloutlib.answers._numbers import read_number, write_number
from rolloutlib.answers._texts import extract_text
from rolloutlib.answers._visible import visible_text

__all__ = [
    "Extraction",
    "Rule",
    "Status",
    "extract",
    "extract_text",
    "read_number",
    "visible_text",
    "write_number",
]
