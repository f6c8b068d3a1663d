"""The commands by themselves, also as a program: python -m tests.data.command."""

import sys

from cscnn.cli import parser_of, split


def command(*arguments: str) -> int:
    """What ``cscnn ARGUMENTS`` does, without its handling of errors."""
    name, rest = split(arguments)
    args = parser_of(name).parse_args(rest)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(command(*sys.argv[1:]))
