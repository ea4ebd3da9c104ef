"""How this copy of the package was installed, so that a hint names a command that works here.

>>> format_install_command("cluster", checkout=Path("/home/ada/fedlab_nb"), command_folder=Path("/home/ada/fedlab_nb"))
"pip install -e '.[cluster]'"
"""

import json
from importlib import metadata
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from fedlab_nb.value_types import JsonObject

DISTRIBUTION = "fedlab-nb"
PACKAGE = Path(__file__).resolve().parent


def find_checkout_folder() -> Path | None:
    """Find the folder of the checkout that the package is imported from; None for an installed wheel."""
    folder = PACKAGE.parent
    project = folder / "pyproject.toml"
    if project.is_file() and f'name = "{DISTRIBUTION}"' in project.read_text(encoding="utf-8"):
        return folder
    return None


def find_pip_source_address_or_empty() -> str:
    """Find the address that pip installed the package from, such as `git+https://…`; "" for a package index.

    pip records it in `direct_url.json` (PEP 610). A wheel file that has been deleted since cannot be
    installed again, so it counts as none.
    """
    try:
        record = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    if not record:
        return ""
    return format_pip_source_address_or_empty(json.loads(record))


def format_pip_source_address_or_empty(direct_url_record: JsonObject) -> str:
    """Write the address in a `direct_url.json` as pip takes it; "" for a file that does not exist any more."""
    url = str(direct_url_record.get("url", ""))
    address = urlparse(url)
    if address.scheme == "file" and not Path(url2pathname(address.path)).exists():
        return ""
    version_control = direct_url_record.get("vcs_info", {})
    if version_control:
        return f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    return url


def format_install_command(
    extra: str,
    checkout: Path | None = None,
    command_folder: Path | None = None,
    pip_source_address: str | None = None,
) -> str:
    """Format the command that adds the optional dependencies `extra` to this installation.

    checkout:           the package's checkout, None for an installed wheel
    command_folder:     the folder in which the command will be typed; None: the present one
    pip_source_address: where pip installed the package from, "" for a package index

    If neither `checkout` nor `pip_source_address` is given, both are found.
    """
    if checkout is None and pip_source_address is None:
        checkout = find_checkout_folder()
        pip_source_address = find_pip_source_address_or_empty()
    if checkout is not None:
        is_in_checkout = (command_folder or Path.cwd()).resolve() == checkout.resolve()
        install_target = "." if is_in_checkout else str(checkout)
        return f"pip install -e '{install_target}[{extra}]'"
    if pip_source_address:
        return f"pip install '{DISTRIBUTION}[{extra}] @ {pip_source_address}'"
    return f"pip install '{DISTRIBUTION}[{extra}]'"
