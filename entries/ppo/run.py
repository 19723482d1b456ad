"""The benchmark entry of the learner `ppo` of `train.py`.

The results in this folder are of the former learner, see `entry.toml`. Measured again, they are of PPO.
"""

from entries.learners import Learner

learner = Learner("ppo", updates={5: 225})
train, load = learner.train, learner.load
