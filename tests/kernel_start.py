"""A notebook's kernel that dies before its first answer is started again.

Jupyter chooses a kernel's ports before the kernel has them. Where several processes start kernels and servers at once,
another one may take such a port in between; the kernel then ends at once.
"""

from nbval import kernel

start_once = kernel.start_new_kernel


def start(*args, tries=3, **options):
    """As nbval's own, up to `tries` times. A kernel that lives and does not answer in time fails at once."""
    try:
        return start_once(*args, **options)
    except RuntimeError as error:
        if tries == 1 or "died" not in str(error):
            raise
        return start(*args, tries=tries - 1, **options)


def pytest_configure() -> None:
    kernel.start_new_kernel = start
