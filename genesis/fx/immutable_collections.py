"""Lists and dictionaries that are arguments of nodes: they cannot be changed, as a node must know whom it uses."""

from __future__ import annotations

from typing import Any, NoReturn

from genesis.base.errors import ArgumentError, message
from genesis.base.pytree import register_pytree_node


def _refused(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise ArgumentError(
        message(
            type(self).__name__,
            f"{type(self).__name__!r} object does not support mutation",
            hint="make a new one, and assign it to node.args or node.kwargs, or call node.update_arg",
        )
    )


class immutable_list(list[Any]):  # noqa: N801
    """A list that can be read.

    >>> from genesis.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2])[0]
    1
    """

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refused
    reverse = sort = _refused

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):  # noqa: N801
    """A dictionary that can be read.

    >>> from genesis.fx.immutable_collections import immutable_dict
    >>> immutable_dict({"a": 1})["a"]
    1
    """

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refused

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


register_pytree_node(immutable_list, lambda x: (list(x), None), lambda children, _: list(children))
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), tuple(x)),
    lambda children, keys: dict(zip(keys, children, strict=True)),
)
