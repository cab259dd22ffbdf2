"""Everything that computes: the public tree, CFR, exact evaluation, strategies, the command line."""

__version__ = "0.1.0"
