"""Images in conversations, which have no text and no tokens of their own."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from rolloutlib.tinker._sdk import load

if TYPE_CHECKING:
    import tinker


def mark(digest: str) -> str:
    """Return what stands for an image in a text: characters for private use, and its digest."""
    return f"\ue000{digest}\ue001"


def mark_id(digest: str) -> int:
    """Return what stands for an image among token ids: a negative number."""
    return -1 - int(digest[:15], 16)


def digest_of(data: str | bytes) -> str:
    """Return what tells an image from others."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def image_urls(message: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the images in a message."""
    content = message["content"]
    if isinstance(content, str):
        return []
    return [part["url"] for part in content if part["type"] == "image"]


def marked_text(content: object) -> str:
    """Return the text of a message's content, with a mark for each image."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] if part["type"] == "text" else mark(digest_of(part["url"]))
        for part in cast("list[dict[str, str]]", content)
    )


def encode_marked(text: str, encode: Callable[[str], list[int]]) -> list[int]:
    """Return the ids of a text, with those of the marks in it."""
    if "\ue000" not in text:
        return encode(text)
    ids: list[int] = []
    for index, piece in enumerate(_MARK.split(text)):  # texts and digests by turns
        if index % 2:
            ids.append(mark_id(piece))
        elif piece:
            ids += encode(piece)
    return ids


def read_image(url: str, count_tokens: Callable[[bytes], int] | None) -> tinker.types.ImageChunk:
    """Return an image in the form of Tinker.

    Args:
        url: A `data:` URL of a PNG or JPEG image.
        count_tokens: Tells how many tokens an image takes.

    Raises:
        ValueError: It is something else.
    """
    head, _, body = url.partition(";base64,")
    kind = head.removeprefix("data:image/").replace("jpg", "jpeg")
    try:
        if kind not in ("png", "jpeg") or not head.startswith("data:"):
            raise binascii.Error
        data = base64.b64decode(body, validate=True)
    except binascii.Error:
        msg = f"an image must be a data: URL of a PNG or JPEG in base64, got {url[:40]!r}"
        raise ValueError(msg) from None
    expected = None if count_tokens is None else count_tokens(data)
    return load().types.ImageChunk(data=data, format=kind, expected_tokens=expected)


def to_chunks(ids: list[int], images: Mapping[int, Any]) -> Iterator[Any]:
    """Yield the chunks of a prompt: its tokens, with the images where their marks stand."""
    kinds = load().types
    start = 0
    for position, token in enumerate(ids):
        if token < 0:
            if position > start:
                yield kinds.EncodedTextChunk(tokens=ids[start:position])
            yield images[token]
            start = position + 1
    if start < len(ids):
        yield kinds.EncodedTextChunk(tokens=ids[start:])


_MARK = re.compile("\ue000([0-9a-f]{64})\ue001")
