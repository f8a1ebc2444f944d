"""What can be seen of a row by itself: lengths, types, masks, spans, finite numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib.rollouts._array_reading import read_array, to_float32
from rolloutlib.training._problems import ProblemKind, RowProblem
from rolloutlib.training._sequences import TokenSequence, TokenSpan

AnyRow: TypeAlias = TokenSequence | Mapping[str, Any]
"""A row of ours, or a trainer's own as a dictionary."""

# By how much the sampled logarithm of a probability near 1 may exceed 0: bfloat16 is that coarse.
_ROUNDING = 0.1

_FIELDS = ("tokens", "loss_mask", "logprobs", "advantages", "spans", "attention_mask")


class RowInspection:
    """A row whose parts are checked one by one; what is not sound is left None.

    Attributes:
        problems: What is wrong with it.
        tokens: The ids, int64.
        mask: Which of them are trained.
        logprobs: The log probabilities, float32.
        advantages: The advantages, float32.
        present: Which tokens are no padding.
        spans: Where the sampled actions stand, None if the row does not say.
    """

    def __init__(self, row: AnyRow, number: int, *, logprobs: bool) -> None:
        self.number = number
        self.problems: list[RowProblem] = []
        self.tokens: NDArray[Any] | None = None
        self.mask: NDArray[np.bool_] | None = None
        self.present: NDArray[np.bool_] | None = None
        self.logprobs: NDArray[np.float32] | None = None
        self.advantages: NDArray[np.float32] | None = None
        self.spans: list[TokenSpan] | None = None
        fields = self._fields(row)
        if fields is None:
            return
        self.tokens = self._array(fields["tokens"], "tokens", "integers", "iu")
        if self.tokens is None:
            return
        negative = self.tokens < 0
        if negative.any():
            position = int(negative.argmax())
            self.note("tokens", f"the id {self.tokens[position]} is negative", position)
        self.mask = self._flags(fields["loss_mask"], "loss_mask")
        if self.mask is None:
            return
        if not self.mask.any():
            self.note("mask", "no token is to be trained")
        if fields["attention_mask"] is not None:
            self.present = self._flags(fields["attention_mask"], "attention_mask")
            if self.present is not None:
                self._expect_none(self.mask & ~self.present, "padding", "padding is to be trained")
        self._check_numbers(fields, self.mask, logprobs)
        if fields["spans"] is not None:
            self.spans = self._read_spans(fields["spans"], self.mask)

    def note(self, kind: ProblemKind, message: str, position: int | None = None) -> None:
        """Add a problem."""
        self.problems.append(RowProblem(kind, message, self.number, position))

    def _fields(self, row: AnyRow) -> dict[str, Any] | None:
        if isinstance(row, TokenSequence):
            fields = {name: getattr(row, name, None) for name in _FIELDS}
            fields["spans"] = row.spans or None  # one that was made without does not say
            return fields
        if not isinstance(cast("object", row), Mapping):
            self.note("type", f"a row is a TokenSequence or a mapping, got {row!r}")
            return None
        if missing := [name for name in _FIELDS[:2] if row.get(name) is None]:
            self.note("type", f"a row has {missing[0]!r}, but this one has only {list(row)}")
            return None
        return {name: row.get(name) for name in _FIELDS}

    def _array(self, values: Any, name: str, what: str, kinds: str) -> NDArray[Any] | None:
        try:
            array = read_array(values, name, what, kinds=kinds)
        except TypeError as error:
            self.note("type", str(error))
            return None
        if self.tokens is not None and len(array) != len(self.tokens):
            self.note("length", f"{name} has {len(array)} entries for {len(self.tokens)} tokens")
            return None
        return array

    def _floats(self, values: Any, name: str) -> NDArray[np.float32] | None:
        array = self._array(values, name, "numbers", "fiu")
        return None if array is None else to_float32(array)

    def _flags(self, values: Any, name: str) -> NDArray[np.bool_] | None:
        array = self._array(values, name, "flags", "biuf")
        if array is None:
            return None
        odd = (array != 0) & (array != 1)
        if odd.any():
            position = int(odd.argmax())
            self.note("mask", f"{name} is {array[position]}, neither 0 nor 1", position)
            return None
        return array.astype(np.bool_)

    def _check_numbers(
        self, fields: dict[str, Any], mask: NDArray[np.bool_], logprobs: bool
    ) -> None:
        if fields["logprobs"] is not None:
            self.logprobs = self._floats(fields["logprobs"], "logprobs")
            if self.logprobs is not None:
                finite = np.isfinite(self.logprobs)
                self._expect_none(mask & ~finite, "logprobs", "the log probability is not finite")
                wrong = mask & finite & (self.logprobs > _ROUNDING)
                self._expect_none(wrong, "logprobs", "the log probability is positive")
        elif logprobs and mask.any():
            self.note("logprobs", "there are none (logprobs=False allows that)")
        if fields["advantages"] is not None:
            self.advantages = self._floats(fields["advantages"], "advantages")
            if self.advantages is not None:
                wrong = ~np.isfinite(self.advantages)
                self._expect_none(wrong, "advantages", "the advantage is not finite")
                wrong = ~mask & (self.advantages != 0)
                self._expect_none(
                    wrong, "advantages", "the advantage of an untrained token is not 0"
                )

    def _expect_none(self, wrong: NDArray[np.bool_], kind: ProblemKind, message: str) -> None:
        if wrong.any():
            count = int(np.count_nonzero(wrong))
            message = message if count == 1 else f"{message} (and of {count - 1} more tokens)"
            self.note(kind, message, int(wrong.argmax()))

    def _read_spans(self, values: Any, mask: NDArray[np.bool_]) -> list[TokenSpan] | None:
        try:
            spans = [_to_span(span) for span in cast("Sequence[Any]", values)]
        except TypeError as error:
            self.note("spans", f"a span is a TokenSpan or its fields as a mapping: {error}")
            return None
        covered = np.zeros(len(mask), np.bool_)
        last: TokenSpan | None = None
        for span in spans:
            if not 0 <= span.start < span.stop <= len(mask):
                self.note("spans", f"{span} lies not within the {len(mask)} tokens")
                return None
            if last is not None and span.start < last.stop:
                self.note("spans", f"{span} begins before {last} ends", span.start)
                return None
            if last is not None and not _follows(span, last):
                self.note("spans", f"{span} is not of a later step than {last}", span.start)
            covered[span.start : span.stop] = True
            last = span
        self._expect_none(mask & ~covered, "mask", "a token of no sampled action is to be trained")
        self._expect_none(covered & ~mask, "mask", "a sampled token is not to be trained")
        return spans


def _to_span(value: Any) -> TokenSpan:
    """Return a span whose numbers are integers.

    Raises:
        TypeError: The value is none.
    """
    span = value if isinstance(value, TokenSpan) else TokenSpan(**value)
    numbers = {name: index(getattr(span, name)) for name in ("start", "stop", "member", "step")}
    hash((span.item_id, span.version, span.stop_reason))
    return replace(span, **numbers)


def _follows(span: TokenSpan, last: TokenSpan) -> bool:
    """Tell whether a span may come after another: of a later step, or of another version of it."""
    if (span.item_id, span.member) != (last.item_id, last.member):
        return True
    goes_on = span.start == last.stop and span.version != last.version
    return span.step > last.step or (span.step == last.step and goes_on)
