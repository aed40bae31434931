"""`rm-service secret-key`: a key for RM_SECRET_KEY_FILE."""

import click

from rm_service.services.external.keys import new_key


@click.command("secret-key")
def secret_key() -> None:
    """Print a new key for the file that RM_SECRET_KEY_FILE names: one key a line, the first one encrypts."""
    click.echo(new_key())
