"""Train on Way of the Dragon by self-play: `python train.py`, or `python train.py td`; see `--help`.

The learners are in agents/; the command itself is agents/command.py.
"""

import sys

from agents.command import main

if __name__ == "__main__":
    sys.exit(main())
