"""Enter behavior cloning, which learns from logged games."""

from entries.offline import Learner
from tools import entries

learner = Learner("bc", beta=0.0)
train, load = learner.train, learner.load

if __name__ == "__main__":
    entries.run(__file__)
