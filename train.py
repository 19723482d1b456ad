"""Train on Way of the Dragon by self-play: `python train.py`, or `python train.py td`; see `--help`."""

import sys

from agents.command import main
from wotd_env.process import prepare_streams

if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
