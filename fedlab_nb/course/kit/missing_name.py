"""The error for a notebook copied from an earlier version of the course, which calls a function by its old name."""

from collections.abc import Callable
from typing import NoReturn


def make_getattr_for_missing_names(module_name: str) -> Callable[[str], NoReturn]:
    """Make the `__getattr__` of a module whose functions lessons call.

    Python calls it for each name that the module does not have (PEP 562). It raises AttributeError with a sentence on
    what to do.

    module_name: `__name__` of the module
    """

    def raise_missing_name(name: str) -> NoReturn:
        lesson = module_name.removeprefix("fedlab_nb.course.")
        raise AttributeError(
            f"{lesson} has no {name!r}. If this notebook is a copy from an earlier version: save it, "
            "stop fedlab-nb with Ctrl-C and start it again in the same folder. It lays today's lesson "
            "beside your copy, with the functions that you wrote."
        )

    return raise_missing_name
