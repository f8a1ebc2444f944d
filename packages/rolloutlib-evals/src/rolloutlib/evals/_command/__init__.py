"""The command `rolloutlib`: a module for each subcommand, and what they share."""

from rolloutlib.evals._command._app import main

__all__ = ["main"]
