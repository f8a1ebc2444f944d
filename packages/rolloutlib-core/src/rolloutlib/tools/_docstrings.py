"""What a docstring says of a function, and of each of its parameters."""

from __future__ import annotations

import inspect
import re

_HEADING = re.compile(r"(args|arguments|parameters|params):", re.IGNORECASE)
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^()]*\))?:\s*(.*)")


def split_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Return a description, and the texts about parameters, of which an "Args:" section tells.

    Only such a section, of Google's style, is taken out. Everything else stays in the description,
    parameters that are described in another style too, so that nothing is lost on the reader.

    Source: Google Python Style Guide, section 3.8.3, "Functions and Methods".
    """
    lines = inspect.cleandoc(text or "").splitlines()
    start = next((index for index, line in enumerate(lines) if _HEADING.fullmatch(line)), None)
    if start is None:
        return "\n".join(lines), {}
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
        end += 1
    entries = _entries(inspect.cleandoc("\n".join(["", *lines[start + 1 : end]])).splitlines())
    rest = [*lines[:start], *lines[end:]]
    return ("\n".join(rest).strip(), entries) if entries else ("\n".join(lines), {})


def _entries(lines: list[str]) -> dict[str, str]:
    """Read "name: text" and "name (type): text"; further lines of a text are indented."""
    entries: dict[str, list[str]] = {}
    texts: list[str] = []
    for line in lines:
        if (found := _ENTRY.fullmatch(line)) is not None:
            texts = entries.setdefault(found[1], [found[2]])
        else:
            texts.append(line.strip())
    return {name: " ".join(filter(None, texts)) for name, texts in entries.items()}
