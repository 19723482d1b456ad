"""Enter PPO by self-play, as `train.py` trains it."""

from entries.learners import Learner

learner = Learner("ppo", updates={5: 150})
train, load = learner.train, learner.load
