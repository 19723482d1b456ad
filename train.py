"""Train on Way of the Dragon by self-play: `python train.py`, or `python train.py td`; see `--help`."""

import sys

from agents.command import main

if __name__ == "__main__":
    sys.exit(main())
