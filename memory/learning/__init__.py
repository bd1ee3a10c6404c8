"""Learning to decide: simulated dialogues, what they are worth, and the training of a small network on them.

Only training needs torch (the `[train]` extra); the network that comes out runs on numpy.
"""
