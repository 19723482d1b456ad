"""`python -m wotd_env.cli` is the `wotd` command."""

from wotd_env.cli import main

main()
