"""Enter PPO by self-play, as `train.py` trains it."""

from entries.learners import Learner
from tools import entries

learner = Learner("ppo", updates={5: 150})
train, load = learner.train, learner.load

if __name__ == "__main__":
    entries.run(__file__)
