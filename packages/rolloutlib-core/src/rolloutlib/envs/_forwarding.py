"""What wrappers and adapters have in common: attributes that come from the environment inside."""

from __future__ import annotations

from typing import Any

import numpy as np


class ForwardedAttribute:
    """An attribute that is the inner environment's until it is set on the outer one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._own = f"_own_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        own = instance.__dict__
        return own[self._own] if self._own in own else getattr(instance.env, self._name)

    def __set__(self, instance: Any, value: object) -> None:
        instance.__dict__[self._own] = value


def forwarded() -> Any:
    """Declare a forwarded attribute; typed so that the declaration of the base class holds."""
    return ForwardedAttribute()


class ForwardsAttributes:
    """Gymnasium's rules for a wrapper's attributes, for anything with an environment inside."""

    env: Any

    action_space: Any = forwarded()
    observation_space: Any = forwarded()
    metadata: Any = forwarded()
    render_mode: Any = forwarded()
    spec: Any = forwarded()
    _np_random: Any = forwarded()  # Gymnasium's checker looks at it

    # There is one random generator, the inner environment's, also when it is set.
    @property
    def np_random(self) -> np.random.Generator:
        """The random generator of the environment inside."""
        return self.env.np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self.env.np_random = value

    @property
    def np_random_seed(self) -> int:
        """The seed of `np_random`, or -1 if the generator was set from outside."""
        return self.env.np_random_seed

    def has_wrapper_attr(self, name: str) -> bool:
        """Tell whether this object, or an environment inside it, has the attribute."""
        return hasattr(self, name) or self.env.has_wrapper_attr(name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return the attribute of the outermost object that has it.

        Raises:
            AttributeError: Neither this object nor an environment inside it has the attribute.
        """
        if hasattr(self, name):
            return getattr(self, name)
        try:
            return self.env.get_wrapper_attr(name)
        except AttributeError as error:
            msg = f"neither {self} nor an environment inside it has the attribute {name!r}"
            raise AttributeError(msg) from error

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set the attribute on the outermost object that has it.

        Args:
            name: The attribute.
            value: Its new value.
            force: Set it on this object if neither it nor an environment inside has it.

        Returns:
            Whether it was set.
        """
        if not hasattr(self, name):
            if self.env.set_wrapper_attr(name, value, force=False):
                return True
            if not force:
                return False
        setattr(self, name, value)
        return True

    def __str__(self) -> str:
        return f"<{type(self).__name__}{self.env}>"

    def __repr__(self) -> str:
        return str(self)
