"""What the system or a library says of a fault, as it can be shown."""

LONGEST = 80


def plain(said: object) -> str:
    """One short line of plain characters."""
    shown = "".join(char if " " <= char <= "~" else " " for char in str(said)[:2000])
    return " ".join(shown.split())[:LONGEST]
