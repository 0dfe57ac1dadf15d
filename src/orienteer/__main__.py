"""``python -m orienteer`` is the ``orienteer`` command."""

from orienteer.cli.main import main

main()
