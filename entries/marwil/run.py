"""Enter MARWIL, which learns from logged games."""

from entries.offline import Learner
from tools import entries

learner = Learner("marwil", beta=2.0)
train, load = learner.train, learner.load

if __name__ == "__main__":
    entries.run(__file__)
