"""The benchmark entry of behavior cloning, which learns from logged games."""

from entries.offline import Learner

learner = Learner("bc", beta=0.0)
train, load = learner.train, learner.load
