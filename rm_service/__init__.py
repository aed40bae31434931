"""rm-service: a tag-based resource manager.

Amounts are booked on labels with a total and a protected share, and are locked, used and given back; see
`docs/architecture.md`.
"""

__version__ = "0.1.0"
