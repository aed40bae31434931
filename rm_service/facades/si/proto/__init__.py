"""The messages of the Scheduler Interface: `si` for today's and the one before, `si_v0` for the oldest.

The `.proto` files are the source; what is generated from them is committed beside them.
"""
