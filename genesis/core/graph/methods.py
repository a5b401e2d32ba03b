"""The methods of `Tensor` that ops attach to it, for editors and type checkers: `scripts/signatures` writes them into
``methods.pyi``.
"""

from __future__ import annotations


class Methods:
    """What `Tensor` inherits from it is known to type checkers only: at run time it is empty, and the methods are there
    already.
    """

    __slots__ = ()
