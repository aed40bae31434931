"""The commands of `rm-service`: each module holds one, and cli.py gathers them."""
