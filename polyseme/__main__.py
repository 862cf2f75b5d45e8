"""Entry point of ``python -m polyseme``."""

from polyseme.cli import main

main()
