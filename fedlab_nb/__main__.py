"""`python -m fedlab_nb`: the same as the `fedlab-nb` command."""

import sys

from .cli import main

sys.exit(main())
