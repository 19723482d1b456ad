"""The benchmark entry of PPO by self-play, the learner `ppo` of `train.py`."""

from entries.learners import Learner

learner = Learner("ppo", updates={5: 150})
train, load = learner.train, learner.load
