"""Start a notebook's kernel again if it dies before its first answer.

Jupyter chooses a kernel's ports before the kernel has them. Where several processes start kernels and servers at once,
another one may take such a port in between; the kernel then ends at once.
"""

from nbval import kernel

start_once = kernel.start_new_kernel


def start_kernel(*args, tries=3, **options):
    """Start a kernel as nbval does, up to `tries` times. One that lives and does not answer fails at once."""
    try:
        return start_once(*args, **options)
    except RuntimeError as error:
        if tries == 1 or "died" not in str(error):
            raise
        return start_kernel(*args, tries=tries - 1, **options)


def pytest_configure() -> None:
    kernel.start_new_kernel = start_kernel
