"""The policy that the options of a model ask for."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Generator
from dataclasses import fields
from typing import Any

from rolloutlib.evals._command._errors import CommandError, ExitCode
from rolloutlib.evals._command._local import MAX_TOKENS, check_local, is_local, local_name, serve
from rolloutlib.evals._command._options import ModelOptions
from rolloutlib.evals._command._pairs import read_pairs


def model_name(options: ModelOptions) -> str:
    """Return the model's name, as logs have it."""
    return local_name(options.model) if is_local(options.model) else options.model


def default_concurrency(options: ModelOptions) -> int:
    """Return how many episodes are played at once if nobody says."""
    return 4 if is_local(options.model) else 64


def sampling(options: ModelOptions) -> dict[str, Any]:
    """Return how the model samples: the settings that decide what it answers, and no others."""
    max_tokens = options.max_tokens
    if max_tokens is None and is_local(options.model):
        max_tokens = MAX_TOKENS
    settings = {
        "max_tokens": max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": options.stop or None,
        "logprobs": options.logprobs or None,
        "tokens": options.tokens or None,
        "send_seed": None if options.send_seed else False,
        "extra_body": read_pairs("--extra-body", options.extra_body) or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


@contextlib.contextmanager
def open_policy(options: ModelOptions, *, concurrency: int, tools: Any = None) -> Generator[Any]:
    """Make the policy, and serve a local model while the block lasts.

    Args:
        options: What the command line says.
        concurrency: How many requests there may be at once.
        tools: What the model may call, or None.

    Raises:
        CommandError: An option is wrong, a key is missing, or something has to be installed.
    """
    openai = check_model(options)
    settings: dict[str, Any] = {
        **sampling(options),
        "timeout": options.request_timeout,
        "max_retries": options.max_retries,
        "max_connections": concurrency,
        "tools": tools,
    }
    if options.logprobs or options.tokens:
        settings["max_incomplete"] = None  # an evaluation does not fail for want of them
    with contextlib.ExitStack() as stack:
        if is_local(options.model):
            settings["base_url"] = stack.enter_context(serve(options.model, concurrency))
        else:
            settings["base_url"] = options.base_url
            settings["api_key"] = _api_key(options)
        try:
            policy = openai.AsyncChatPolicy(model_name(options), **settings)
        except (TypeError, ValueError) as error:
            raise CommandError(_of_option(str(error))) from error
        yield policy


def check_model(options: ModelOptions) -> Any:
    """Refuse what cannot be asked, before data are loaded, and return `rolloutlib.openai`.

    Raises:
        CommandError: An option is wrong, a key is missing, or something has to be installed.
    """
    if is_local(options.model):
        if options.base_url is not None:
            msg = f"--model {options.model} is served here, so it has no --base-url"
            raise CommandError(msg)
        check_local(options.model)
    else:
        _api_key(options)
    try:
        return importlib.import_module("rolloutlib.openai")
    except ImportError as error:
        msg = "asking a model needs the OpenAI client: pip install 'rolloutlib-evals[openai]'"
        raise CommandError(msg, ExitCode.BROKEN) from error


def _of_option(text: str) -> str:
    """Return what is said of a policy's argument as said of the option that it comes from."""
    name, space, rest = text.partition(" ")
    name = "request_timeout" if name == "timeout" else name
    if name not in {field.name for field in fields(ModelOptions)}:
        return text
    return f"--{name.replace('_', '-')}{space}{rest}"


def _api_key(options: ModelOptions) -> str | None:
    """Return the key to pass on, or None for what the policy itself takes from the environment."""
    variable = options.api_key_env
    if variable is not None:
        key = os.environ.get(variable)
        if not key:
            msg = f"the environment variable {variable!r} is not set: export the key of the server in it"
            raise CommandError(msg)
        return key
    if not (
        options.base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_KEY")
    ):
        msg = (
            "name a server by --base-url, or export the key of OpenAI's in OPENAI_API_KEY; --model local "
            "needs neither"
        )
        raise CommandError(msg)
    return None
