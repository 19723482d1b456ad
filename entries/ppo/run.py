"""The benchmark entry of the learner `ppo` of `train.py`."""

from entries.learners import Learner

learner = Learner("ppo", updates={5: 225})
train, load = learner.train, learner.load
