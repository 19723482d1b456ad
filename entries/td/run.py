"""The benchmark entry of TD(lambda), the learner `td` of `train.py`."""

from entries.learners import Learner

learner = Learner("td", updates={1: 200, 5: 600})
train, load = learner.train, learner.load
