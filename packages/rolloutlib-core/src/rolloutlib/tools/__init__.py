"""Functions as tools that a model calls; whatever is wrong with a call becomes a message."""

from rolloutlib.tools._arguments import read_call
from rolloutlib.tools._definitions import Tools, define_tools
from rolloutlib.tools._outcomes import EndEpisode, ToolError, ToolOutcome, ToolProblem
from rolloutlib.tools._spaces import ArgumentsSpace, ReplySpace
from rolloutlib.tools._tool import Tool
from rolloutlib.tools._toolset import Toolset

__all__ = [
    "ArgumentsSpace",
    "EndEpisode",
    "ReplySpace",
    "Tool",
    "ToolError",
    "ToolOutcome",
    "ToolProblem",
    "Tools",
    "Toolset",
    "define_tools",
    "read_call",
]
