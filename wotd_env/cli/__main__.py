"""Run the `wotd` command with `python -m wotd_env.cli`."""

from wotd_env.cli import main

main()
