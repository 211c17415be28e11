"""Dataclasses whose methods are made when one is first used.

Clew has hundreds of small frozen records, and a command uses a few of those that it loads. The standard library writes
and compiles the methods of each while its module is imported; that was almost half of what a command costs. This
`dataclass` takes the same arguments and gives the same class, slots included, but leaves the methods to
`dataclasses.dataclass` until an object is made, compared or printed, or someone asks for the fields.

Type checkers see the decorator of the standard library.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    from clew.deferred.dataclass import dataclass

__all__ = ["dataclass"]
