"""The commands about data by themselves, also as a program: python -m tests.data.command."""

import argparse
import sys

from cscnn.data.commands import add_commands


def command(*arguments: str) -> int:
    """What ``cscnn ARGUMENTS`` does, without its handling of errors."""
    parser = argparse.ArgumentParser(prog="cscnn")
    add_commands(parser.add_subparsers(required=True))
    args = parser.parse_args(arguments)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(command(*sys.argv[1:]))
