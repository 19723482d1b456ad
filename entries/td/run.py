"""Enter the learner of `train.py td`."""

from entries.learners import Learner
from tools import entries

learner = Learner("td", updates={1: 200, 5: 600})
train, load = learner.train, learner.load

if __name__ == "__main__":
    entries.run(__file__)
