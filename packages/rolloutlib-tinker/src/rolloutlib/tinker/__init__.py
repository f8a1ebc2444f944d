"""Sampling from Tinker, and its training data from trajectories."""

from rolloutlib.tinker._async_policy import AsyncTinkerPolicy
from rolloutlib.tinker._cookbook_adapters import AsyncFromCookbook, TokenPrompt
from rolloutlib.tinker._cookbook_envs import CookbookEnv
from rolloutlib.tinker._cookbook_groups import CookbookDataset, CookbookGroupBuilder
from rolloutlib.tinker._cookbook_steps import CookbookStep
from rolloutlib.tinker._datums import LossName, read_logprobs, to_datums
from rolloutlib.tinker._errors import (
    MissingTokensError,
    ModelServerError,
    RequestRefusedError,
    ServerTimeoutError,
    ServerUnavailableError,
)
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._policy import TinkerPolicy
from rolloutlib.tinker._prompts import TinkerPrompt
from rolloutlib.tinker._renderers import ChatTemplateRenderer, Renderer, Termination

__all__ = [
    "AsyncFromCookbook",
    "AsyncTinkerPolicy",
    "ChatTemplateRenderer",
    "CookbookDataset",
    "CookbookEnv",
    "CookbookGroupBuilder",
    "CookbookStep",
    "LossName",
    "MissingTokensError",
    "ModelServerError",
    "PolicyOptions",
    "Renderer",
    "RequestRefusedError",
    "ServerTimeoutError",
    "ServerUnavailableError",
    "Termination",
    "TinkerPolicy",
    "TinkerPrompt",
    "TokenPrompt",
    "read_logprobs",
    "to_datums",
]
