"""Marks around data in a prompt, which nothing in the data can imitate."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from itertools import count

_LETTERS = (
    "bcdfghjklmnpqrst"  # 16 of them; no vowels, so no words, and nothing JSON reads as a number
)
_LENGTH = 12

# What chat templates of common models begin and end a turn with. A local server may read these in the
# text of a message as the tokens themselves, and so let the text begin a message of its own.
_CONTROL = re.compile(
    r"<(?=[|\uff5c][^|\uff5c<>\n]{1,40}[|\uff5c]>"  # ChatML, Llama 3, Phi; DeepSeek in full width
    r"|\|[a-z_]{1,20}>|[a-z_]{1,20}\|>"  # Gemma 4
    r"|/?(?:s|bos|eos|pad|unk|BOS_TOKEN|EOS_TOKEN)>"
    r"|(?:start|end)_of_turn>"  # Gemma
    r"|</?SYS>>"  # Llama 2
    r"|(?:extra_id|SPECIAL|reserved)_\d{1,4}>"  # Nemotron, Baichuan
    r"|seed:[a-z_:]{1,40}>"  # Seed
    r"|[es]o[adhp]>|/?role>|_(?:user|bot|system|end)>)"  # GLM and InternLM, Ling, TeleChat
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"  # Mistral
    r"|\|[^|\[\]\n]{1,40}\|\]"  # EXAONE
    r"|UNUSED_TOKEN_\d{1,4}\]|e~\[)"  # InternLM 2, MiniMax
    r"|\](?=~!?b[\[\]])"  # MiniMax
)


class Fence:
    """Encloses data in tags that end in a nonce: letters that the data does not have.

    Args:
        texts: The data. The nonce is in none of them, in whatever case.
        seed: Makes the nonce from the texts and this; by default it is drawn at random.

    Attributes:
        nonce: 12 letters, 48 bits.
    """

    def __init__(self, texts: Sequence[str], seed: int | str | None = None) -> None:
        lowered = [text.lower() for text in texts]
        nonces = (_nonce(texts, seed, attempt) for attempt in count())
        self.nonce: str = next(nonce for nonce in nonces if not _occurs(nonce, lowered))

    def around(self, name: str, text: str) -> str:
        """Return the text between its tags, with its control tokens broken."""
        return f"<{name}-{self.nonce}>\n{without_control(text)}\n</{name}-{self.nonce}>"


def without_control(text: str) -> str:
    """Break tokens that begin or end a turn by a space, and replace halves of characters by "?"."""
    return _CONTROL.sub(r"\g<0> ", text.encode("utf-8", "replace").decode())


def _occurs(nonce: str, texts: Sequence[str]) -> bool:
    return any(nonce in text for text in texts)


def _nonce(texts: Sequence[str], seed: int | str | None, attempt: int) -> str:
    if seed is None:
        digits = secrets.token_hex(_LENGTH // 2)
    else:
        digest = hashlib.sha256(f"{seed!r} {attempt} {len(texts)}".encode())
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(f" {len(data)} ".encode() + data)
        digits = digest.hexdigest()[:_LENGTH]
    return "".join([_LETTERS[int(digit, 16)] for digit in digits])
