"""Groups of commands of which `show` need not be typed."""

import click


class ShowByDefault(click.Group):
    """`providers` and `providers TYPE/NAME` are `providers show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)
