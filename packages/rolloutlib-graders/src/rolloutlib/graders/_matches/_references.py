"""What a text is compared with, and the score of the comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from rolloutlib.answers import Extraction
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._rubric import Rubric
from rolloutlib.scores import Score

Reference: TypeAlias = Criterion | str | Sequence[str]
"""What is right: a text, several texts of which each is right, or a criterion with `references`."""

GoldT = TypeVar("GoldT")

_MAX_EXTRACTED = 200  # characters of an answer that a score repeats


class Match(ABC, Generic[GoldT]):
    """A grader that scores a text 1 if its answer is the reference or one of several, else 0.

    It never raises on any text, but always on a reference that it cannot use, before it reads the
    text. The score's metadata hold

    - "status": "found"; "none", "ambiguous" or "truncated" where no answer was found; or what a
      subclass tells beside;
    - "extracted": the answer, at most 200 characters of it;
    - "rule" and "span": which rule found it, and where in the text;
    - "reason": why there is none, where there is none;
    - "reference": the place of the reference that was met, from 0, or None.
    """

    _options: ClassVar[tuple[str, ...]] = ()
    _packages: ClassVar[tuple[str, ...]] = ()  # that grade, beside those of this project

    @property
    def fingerprint(self) -> str:
        """What grades depend on, for `CachedGrader`: the options, and the versions of packages.

        Empty for a subclass that is defined elsewhere, since it may grade by rules of its own.
        """
        if not type(self).__module__.startswith(f"{__package__}."):
            return ""
        options = self._describe([name for name in self._options if name != "num_workers"])
        packages = ("rolloutlib-core", "rolloutlib-graders", *self._packages)
        return "; ".join([options, *[f"{name} {version(name)}" for name in packages]])

    def __call__(self, text: str, reference: Reference, /) -> Score:
        """Grade a text.

        Args:
            text: What the model wrote, thinking included.
            reference: What is right.

        Raises:
            TypeError: The text is no text, or the reference neither a criterion nor text.
            ValueError: There is no reference, or one that is unusable.
        """
        golds = self._golds(reference)
        check_text(text)
        return self._grade(text, golds)

    def check_reference(self, reference: Reference, /) -> None:
        """Raise what grading by this reference would raise; for use before a run.

        Raises:
            TypeError: The reference is neither a criterion nor text.
            ValueError: There is no reference, or one that is unusable.
        """
        self._golds(reference)

    def __repr__(self) -> str:
        return self._describe(self._options)

    def _describe(self, options: Sequence[str]) -> str:
        described = [f"{name}={getattr(self, f'_{name}')!r}" for name in options]
        return f"{type(self).__name__}({', '.join(described)})"

    @abstractmethod
    def _golds(self, reference: Reference) -> GoldT:
        """Return what answers are compared with."""

    @abstractmethod
    def _grade(self, text: str, golds: GoldT) -> Score: ...


def read_references(reference: Reference) -> tuple[str, ...]:
    """Return the texts that are right.

    Raises:
        TypeError: It is neither a criterion nor text nor texts.
        ValueError: There is none, or an empty one.
    """
    if isinstance(reference, Criterion):
        if not reference.references:
            msg = f"criterion {reference.id!r} has no references to compare with"
            raise ValueError(msg)
        return reference.references
    if isinstance(cast("object", reference), Rubric):
        msg = f"{reference!r} is a rubric: grade its criteria, by a CompositeGrader"
        raise TypeError(msg)
    texts = (reference,) if isinstance(reference, str) else reference
    if not isinstance(cast("object", texts), Sequence) or not all(
        isinstance(cast("object", text), str) for text in texts
    ):
        msg = f"a reference must be text, several texts or a Criterion, got {reference!r}"
        raise TypeError(msg)
    if not texts or not all(text.strip() for text in texts):
        msg = f"a reference must not be empty, got {reference!r}"
        raise ValueError(msg)
    return tuple(texts)


def check_text(text: str) -> None:
    """Refuse what is no text.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(cast("object", text), str):
        msg = f"an answer must be text, got {text!r}"
        raise TypeError(msg)


def match_score(found: Extraction, matched: int | None = None, **metadata: Any) -> Score:
    """Return the score of a text.

    Args:
        found: Its answer.
        matched: The place of the reference that the answer meets.
        metadata: What to put in place of, or beside, what the extraction says.
    """
    merged = {**found.as_metadata(), "reference": matched, **metadata}
    extracted = merged["extracted"]
    if isinstance(extracted, str) and len(extracted) > _MAX_EXTRACTED:
        merged["extracted"] = f"{extracted[: _MAX_EXTRACTED - 1]}…"
    return Score(float(matched is not None), metadata=merged)
