"""``python -m genesis``: the same as the command ``genesis``."""

import sys

from genesis.cli import main

sys.exit(main())
