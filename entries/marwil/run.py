"""The benchmark entry of MARWIL, which learns from logged games."""

from entries.offline import Learner

learner = Learner("marwil", beta=2.0)
train, load = learner.train, learner.load
