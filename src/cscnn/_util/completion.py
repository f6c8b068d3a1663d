"""Scripts by which shells complete a command line, made from its parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cscnn._util.parser import one_line

WIDTH = 60  #: characters of descriptions


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes:
        name: e.g. ``--out``.
        text: what it is, in a few words.
        values: that it may have; empty if any.
        takes_value: whether a value follows.
    """

    name: str
    text: str = ""
    values: tuple[str, ...] = ()
    takes_value: bool = True


@dataclass(frozen=True)
class Command:
    """A command: its words, e.g. ``"data info"``, its options, and values of its arguments."""

    words: str
    text: str
    options: tuple[Option, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """All commands of a program; groups are first words of several, with a text for each."""

    name: str
    commands: tuple[Command, ...]
    groups: Mapping[str, str] = field(default_factory=dict)

    def top(self) -> dict[str, str]:
        """What may follow the program -> texts."""
        single = {c.words: c.text for c in self.commands if " " not in c.words}
        return {**single, **self.groups}

    def within(self, group: str) -> dict[str, str]:
        """What may follow a group -> texts."""
        return {
            c.words.split()[1]: c.text for c in self.commands if c.words.startswith(f"{group} ")
        }


def options_of(
    parser: argparse.ArgumentParser, values: Mapping[str, Sequence[str]]
) -> tuple[Option, ...]:
    """The options of a parser.

    Args:
        parser: of argparse, or one that derives from it.
        values: option -> what it may be, where that is known.
    """
    return tuple(
        Option(name, _short(action.help), tuple(values.get(name, ())), action.nargs != 0)
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and action.help != argparse.SUPPRESS
    )


def _short(text: str | None) -> str:
    """The beginning of a help text, without what argparse would fill in."""
    line = one_line((text or "").split("(default")[0].split("%")[0]).strip()
    return line if len(line) <= WIDTH else line[: WIDTH - 4].rsplit(" ", 1)[0] + " ..."


# --- bash and zsh ---------------------------------------------------------------------------------

_BASH = """\
# Completion of {name} for bash: source this file, or keep it as
# ~/.local/share/bash-completion/completions/{name}
_{name}() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}"
    local command="" words="" values="" word i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        case "$command" in
            "" | {groups}) [[ "$word" != -* ]] && command="${{command:+$command }}$word" ;;
            *) break ;;
        esac
    done
    case "$command" in
{words}
    esac
    case "$command $previous" in
{values}
    esac
    if [[ -n "$values" && "$current" != -* ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$current"))
    elif [[ "$current" == -* || " {groups_spaced} " == *" $command "* || -z "$command" ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=()
    fi
}}
complete -o bashdefault -o default -F _{name} {name}
"""

_ZSH = """\
#compdef {name}
# Completion of {name} for zsh: keep this file as _{name} in a folder of $fpath.
_{name}() {{
    local command="" current="${{words[CURRENT]}}" previous="${{words[CURRENT - 1]}}" word
    local -a choices values
    integer i
    for ((i = 2; i < CURRENT; i++)); do
        word="${{words[i]}}"
        case "$command" in
            ("" | {groups}) [[ "$word" != -* ]] && command="${{command:+$command }}$word" ;;
            (*) break ;;
        esac
    done
    case "$command" in
{words}
    esac
    case "$command $previous" in
{values}
    esac
    if [[ ${{#values}} -gt 0 && "$current" != -* ]]; then
        compadd -- $values
    elif [[ "$current" == -* || " {groups_spaced} " == *" $command "* || -z "$command" ]]; then
        compadd -- $choices
    else
        _files
    fi
}}
if [[ "${{funcstack[1]}}" == "_{name}" ]]; then
    _{name} "$@"
else
    compdef _{name} {name}
fi
"""


def bash(program: Program) -> str:
    """A script for bash."""
    return _script(
        program,
        _BASH,
        lambda pattern, words: f'        {pattern}) words="{" ".join(words)}" ;;',
        lambda pattern, values: f'        {pattern}) values="{" ".join(values)}" ;;',
    )


def zsh(program: Program) -> str:
    """A script for zsh."""
    return _script(
        program,
        _ZSH,
        lambda pattern, words: f"        ({pattern}) choices=({' '.join(words)}) ;;",
        lambda pattern, values: f"        ({pattern}) values=({' '.join(values)}) ;;",
    )


Line = Callable[[str, Sequence[str]], str]


def _script(program: Program, template: str, words: Line, values: Line) -> str:
    """A template with a line for each command, and one for each option with known values."""
    choices = [words('""', [*program.top(), "--help", "--version", "--debug"])]
    choices += [words(f'"{group}"', list(program.within(group))) for group in program.groups]
    known = []
    for command in program.commands:
        choices.append(words(f'"{command.words}"', [o.name for o in command.options]))
        for option in command.options:
            if option.values:
                known.append(values(f'"{command.words} {option.name}"', option.values))
        if command.values:  # right after the command
            last = command.words.split()[-1]
            known.append(values(f'"{command.words} {last}"', command.values))
    return template.format(
        name=program.name,
        groups=" | ".join(program.groups),
        groups_spaced=" ".join(program.groups),
        words="\n".join(choices),
        values="\n".join(known),
    )


# --- fish -----------------------------------------------------------------------------------------


def fish(program: Program) -> str:
    """A script for fish."""
    head = f"# Completion of {program.name} for fish: keep it in ~/.config/fish/completions."
    return "\n".join([head, *_fish_lines(program)]) + "\n"


def _fish_lines(program: Program) -> Iterator[str]:
    complete, seen = f"complete -c {program.name}", "__fish_seen_subcommand_from"
    groups = " ".join(program.groups)
    for name, text in program.top().items():
        yield f"{complete} -f -n __fish_use_subcommand -a {name} -d {shlex.quote(text)}"
    for group in program.groups:
        names = program.within(group)
        test = shlex.quote(f"{seen} {group}; and not {seen} {' '.join(names)}")
        for name, text in names.items():
            yield f"{complete} -f -n {test} -a {name} -d {shlex.quote(text)}"
    for command in program.commands:
        group, _, name = command.words.rpartition(" ")
        test = f"{seen} {group}; and {seen} {name}" if group else f"{seen} {name}"
        test += "" if group or not groups else f"; and not {seen} {groups}"
        begin = f"{complete} -n {shlex.quote(test)}"
        if command.values:
            yield f"{begin} -f -a {shlex.quote(' '.join(command.values))}"
        for option in command.options:
            line = f"{begin} -l {option.name.removeprefix('--')}"
            line += " -r" * option.takes_value
            if option.values:
                line += f" -f -a {shlex.quote(' '.join(option.values))}"
            yield line + (f" -d {shlex.quote(option.text)}" if option.text else "")


SHELLS: dict[str, Callable[[Program], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
