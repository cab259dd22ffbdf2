"""Everything that computes: the public tree, CFR, exact evaluation, strategies, the command line."""
