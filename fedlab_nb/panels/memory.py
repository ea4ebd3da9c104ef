"""Gives memory back to the system that Python has freed and the C library still keeps."""

import ctypes
from contextlib import suppress


def return_freed_memory_to_system() -> None:
    """Give freed memory back to the system, where the C library is glibc."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
