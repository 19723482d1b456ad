"""Exact planning of a turn, with any value function for the positions after the turn.

The package contains a hand-made value function and learned ones.
"""
