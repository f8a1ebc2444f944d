"""A function that a model may call."""

from __future__ import annotations

import copy
import functools
import inspect
import re
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar, cast

import anyio
import pydantic_core

from rolloutlib._calls import RefuseStrayCancellation, is_async, is_awaitable
from rolloutlib._calls import call as call_either
from rolloutlib._exceptions import read_error
from rolloutlib._values import to_float, to_unicode
from rolloutlib.tools._arguments import invalid_problem, malformed_problem
from rolloutlib.tools._content import to_content
from rolloutlib.tools._outcomes import EndEpisode, ToolError, ToolOutcome, ToolProblem
from rolloutlib.tools._overdue import OverdueError, run_within
from rolloutlib.tools._signatures import read_signature
from rolloutlib.types import FunctionDefinition, Message, ToolCall, ToolDefinition

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Tool(Generic[P, R]):
    """A function with annotations, as a tool that a model may call.

    The annotations become the JSON schema of the arguments, by pydantic; the docstring becomes the
    description, and an "Args:" section that of each argument. `Annotated[int, Field(gt=0,
    description="...")]` says more. Called itself, a tool is the function that it was made of, so
    that the class serves as a decorator.

    Arguments of a call are read as pydantic reads JSON: "3" counts as an integer. Arguments that the
    function does not take are refused. What the function is given is its own copy.

    Whatever is wrong with a call becomes a message that says what to mend; so does an exception
    that the function raises, and `sys.exit`, as a `RuntimeError`. Returning an `EndEpisode` ends the episode of a `ChatEnv`.

    A tool keeps nothing from call to call. State belongs to an object whose methods are the tools.

    Args:
        function: A function, method or other callable, which may be a coroutine function. All its
            parameters have annotations and can be given by name.
        name: What the model calls it by; by default the function's name.
        description: What the model is told of it; by default the docstring.
        timeout: The most seconds that a call may take. A synchronous function with one runs on a
            thread of its own; Python cannot stop it, so it runs out there, and its result is dropped.
        strict: Read arguments by pydantic's strict mode: "3" is no integer.
        catch: The exceptions of the function that become messages; others are raised, to find
            mistakes in the tool itself. A `ToolError` always becomes a message.

    Raises:
        TypeError: The function cannot be called, a parameter cannot be described or given by name,
            or an argument is of the wrong type.
        ValueError: The name is none that model servers take (1 to 64 ASCII letters, digits, `_` and
            `-`), or the time limit is not positive.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        strict: bool = False,
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
    ) -> None:
        if not callable(function) or isinstance(function, Tool):
            msg = f"a tool is made of a function, got {function!r}"
            raise TypeError(msg)
        if name is None:
            name = str(getattr(function, "__name__", type(function).__name__))
        if not _NAME.fullmatch(name):
            msg = (
                f"the name of a tool has 1 to 64 ASCII letters, digits, '_' and '-', got {name!r}; "
                "pass name="
            )
            raise ValueError(msg)
        if inspect.isasyncgenfunction(function):
            msg = f"tool {name!r} is an asynchronous generator, which nobody reads: return a list"
            raise TypeError(msg)
        if timeout is not None and to_float(timeout, "timeout") <= 0:
            msg = f"timeout must be positive, got {timeout!r}"
            raise ValueError(msg)
        kinds = cast("tuple[object, ...]", catch if isinstance(catch, tuple) else (catch,))
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            msg = f"catch must be a class of exceptions, or a tuple of them, got {catch!r}"
            raise TypeError(msg)
        self._signature = read_signature(function, f"tool {name!r}")
        self.function = function
        self.name = name
        self.description: str = self._signature.description if description is None else description
        self.timeout = timeout
        self.strict = strict
        self.catch = catch

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function, as far as its definition shows."""
        return is_async(self.function)

    @property
    def definition(self) -> ToolDefinition:
        """What a model is told of the tool, in the form that OpenAI's API and chat templates take.

        The parameters are a JSON schema without the key `strict`, which servers refuse for schemas
        that have optional arguments.
        """
        function: FunctionDefinition = {
            "name": self.name,
            "description": self.description,
            "parameters": copy.deepcopy(dict(self._signature.schema)),
        }
        return {"type": "function", "function": function}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that the function is given, from those of a call.

        Raises:
            ValueError: They are not what the function takes.
        """
        return self._signature.adapter.validate_json(
            pydantic_core.to_json(arguments), strict=self.strict
        )

    def call(self, call: ToolCall) -> ToolOutcome:
        """Do what a model asks.

        Raises:
            TypeError: The function is asynchronous: see `acall`.
            Exception: What the function raises and `catch` does not name.
        """
        self.check_sync()
        arguments = self._arguments(call)
        if isinstance(arguments, ToolOutcome):
            return arguments
        try:
            function = functools.partial(cast("Callable[..., Any]", self.function), **arguments)
            result = function() if self.timeout is None else run_within(self.timeout, function)
            if not is_awaitable(result):
                return self._success(call, result)
        except (Exception, SystemExit) as error:
            return self._failure(call, error)
        if isinstance(result, Coroutine):
            cast("Coroutine[Any, Any, Any]", result).close()
        raise self._refusal()

    async def acall(self, call: ToolCall, *, inline: bool = False) -> ToolOutcome:
        """Do what a model asks; a synchronous function may block, so it runs on a worker thread.

        Args:
            call: The call.
            inline: Call a synchronous function on the event loop.

        Raises:
            Exception: What the function raises and `catch` does not name.
        """
        arguments = self._arguments(call)
        if isinstance(arguments, ToolOutcome):
            return arguments
        try:
            function = functools.partial(cast("Callable[..., Any]", self.function), **arguments)
            with anyio.move_on_after(self.timeout), RefuseStrayCancellation(self):
                return self._success(call, await call_either(function, inline=inline))
        except (Exception, SystemExit) as error:
            return self._failure(call, error)
        return self._failure(call, OverdueError())

    def check_sync(self) -> None:
        """Refuse an asynchronous function where there is no event loop.

        Raises:
            TypeError: The function is asynchronous.
        """
        if self.is_async:
            raise self._refusal()

    def _refusal(self) -> TypeError:
        return TypeError(f"{self} is asynchronous: use AsyncChatEnv, or await acall()")

    def _arguments(self, call: ToolCall) -> dict[str, Any] | ToolOutcome:
        if "malformed" in call:
            text = f"the arguments of {self.name!r} are no JSON object: {malformed_problem(call['malformed'])}"
            return refuse(call, "malformed", text)
        try:
            return self.read(call["arguments"])
        except ValueError as error:
            text = f"{self.name!r} does not take these arguments:{invalid_problem(error)}"
            return refuse(call, "invalid", text, error)
        except Exception as error:  # of a validator that the user wrote
            return self._failure(call, error)

    def _success(self, call: ToolCall, result: Any) -> ToolOutcome:
        ends = isinstance(result, EndEpisode)
        content = to_content(result.result if isinstance(result, EndEpisode) else result)
        return ToolOutcome(answer(call, content), ends_episode=ends)

    def _failure(self, call: ToolCall, error: Exception | SystemExit) -> ToolOutcome:
        if isinstance(error, SystemExit):  # of code that a model wrote, as a rule
            left = RuntimeError(
                f"it called sys.exit({'' if error.code is None else repr(error.code)})"
            )
            left.__cause__ = error
            error = left
        if isinstance(error, OverdueError):
            text = f"{self.name!r} took longer than {self.timeout} seconds"
            return refuse(call, "timeout", text, error)
        if isinstance(error, ToolError):
            return refuse(call, "failed", read_error(error, str) or f"{self.name!r} failed", error)
        if not isinstance(error, self.catch):
            raise error
        return refuse(call, "failed", f"{self.name!r} failed: {read_error(error, _form)}", error)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pydantic's validators cannot be pickled; the function says all that there is to know.
        settings = {
            name: getattr(self, name)
            for name in ("name", "description", "timeout", "strict", "catch")
        }
        return (_make, (self.function, settings))

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


def answer(call: ToolCall, content: Any) -> Message:
    """Return the message that answers a call."""
    message: Message = {"role": "tool", "name": call["name"], "content": content}
    if "id" in call:
        message["tool_call_id"] = call["id"]
    return message


def refuse(
    call: ToolCall, problem: ToolProblem, text: str, error: Exception | None = None
) -> ToolOutcome:
    """Return the outcome of a call with which something is wrong."""
    return ToolOutcome(answer(call, to_unicode(f"error: {text}")), problem, error)


def _form(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _make(function: Callable[..., Any], settings: dict[str, Any]) -> Tool[..., Any]:
    return Tool(function, **settings)
