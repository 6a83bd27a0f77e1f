"""`python -m dendritree_lab`: the `dendritree` command."""

from .cli import main

raise SystemExit(main())
