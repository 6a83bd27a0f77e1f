"""`python -m dendritree`."""

from .cli import main

raise SystemExit(main())
