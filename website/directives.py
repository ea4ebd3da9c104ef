"""What the reference's pages are made from: the command line's own parser, and pictures that are
drawn when the site is built.

```{picture} name         the code is run, its last line is a Picture: the picture, its sentence,
code                      and the code are shown
```

```{commands}             every command of fedlab-nb, with its options
```

```{names}                every public name of fedlab_nb, with its first sentence
```

```{citation}             CITATION.cff as BibTeX
```
"""

import argparse
import ast
import inspect
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import fedlab_nb
from fedlab_nb.arguments import make_command_line_parser
from fedlab_nb.plots import Picture

ROOT = Path(__file__).parents[1]


def draw(code: str, names: dict) -> Picture:
    """Run the code; its last line is an expression whose value is the picture."""
    *statements, last = ast.parse(code).body
    exec(compile(ast.Module(statements, []), "<gallery>", "exec"), names)
    picture = eval(compile(ast.Expression(last.value), "<gallery>", "eval"), names)
    if not isinstance(picture, Picture):
        raise TypeError(f"the last line gives a {type(picture).__name__}, but must give a Picture")
    return picture


class PictureDirective(SphinxDirective):
    """A picture with its sentence, and the code that makes it. Blocks of one page share their names."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        names = self.env.temp_data.setdefault("gallery names", {})
        code = "\n".join(self.content)
        picture = draw(code, names)
        folder = Path(self.env.app.outdir) / "_images"
        folder.mkdir(exist_ok=True)
        file = f"gallery-{self.arguments[0]}.svg"
        picture.save(folder / file)
        depth = self.env.docname.count("/")
        image = f'<img class="gallery" loading="lazy" alt="{{alt}}" src="{"../" * depth}_images/{file}">'
        alt = nodes.unescape(picture.alt).replace("&", "&amp;").replace('"', "&quot;")
        sentence = nodes.paragraph("", picture.sentence)
        source = nodes.literal_block(code, code, language="python")
        return [nodes.raw("", image.format(alt=alt), format="html"), sentence, source]


class CommandsDirective(SphinxDirective):
    """Each command in a section: its help, its usage, its arguments."""

    def run(self) -> list[nodes.Node]:
        main = make_command_line_parser()
        sections = [self.section("fedlab-nb", main.description, main)]
        for name, command, help_text in subcommands(main):
            sections.append(self.section(f"fedlab-nb {name}", help_text, command))
        return sections

    def section(
        self, title: str, help_text: str, command: argparse.ArgumentParser
    ) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title(title, title)
        section += nodes.paragraph("", sentence_of(help_text))
        usage = command.format_usage().removeprefix("usage: ")
        section += nodes.literal_block(usage, usage, language="none")
        rows = [action for action in command._actions if action.help != argparse.SUPPRESS]
        rows = [action for action in rows if not isinstance(action, argparse._SubParsersAction)]
        items = nodes.definition_list()
        for action in rows:
            items += self.argument(action)
        section += items
        return section

    def argument(self, action: argparse.Action) -> nodes.definition_list_item:
        item = nodes.definition_list_item()
        term = nodes.term()
        term += nodes.literal("", written(action))
        item += term
        about = action.help or ""
        if action.choices:
            about = f"{about} One of {', '.join(map(str, action.choices))}.".strip()
        default = action.default
        if default not in (None, False, [], argparse.SUPPRESS) and "default" not in about:
            about = f"{about} (default: {default})".strip()
        definition = nodes.definition()
        definition += nodes.paragraph("", about)
        item += definition
        return item


def subcommands(main: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser, str]]:
    """(name, its parser, its help) of each command, in the order of `fedlab-nb --help`."""
    (group,) = (a for a in main._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in group._choices_actions}
    return [(name, command, helps.get(name, "")) for name, command in group.choices.items()]


def written(action: argparse.Action) -> str:
    """An argument as it is typed: `--alpha ALPHA`, `METHOD`."""
    value = action.metavar or action.dest.upper()
    if not action.option_strings:
        return str(action.metavar or action.dest)
    if action.nargs == 0:
        return ", ".join(action.option_strings)
    return f"{', '.join(action.option_strings)} {value}"


def sentence_of(text: str | None) -> str:
    """A help text as a sentence."""
    text = (text or "").strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


class NamesDirective(SphinxDirective):
    """A table of all public names: what it is, in the first sentence of its docstring."""

    def run(self) -> list[nodes.Node]:
        lines = []
        for name in public_names():
            about = summary_of(getattr(fedlab_nb, name))
            lines.append(f"- {{py:obj}}`fl.{name} <fedlab_nb.{name}>`: {about}")
        parent = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.env.docname), 0, parent)
        return [parent]


def public_names() -> list[str]:
    """Every name of `fl` that somebody calls; its version is a text."""
    return [name for name in fedlab_nb.__all__ if not name.startswith("_")]


def summary_of(thing: object) -> str:
    """The first sentence of its docstring; a dict has none of its own."""
    if isinstance(thing, dict):
        return "The registered methods by name."
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".") + "."


class CitationDirective(SphinxDirective):
    """The software's own entry of CITATION.cff as BibTeX."""

    def run(self) -> list[nodes.Node]:
        text = bibtex(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")))
        return [nodes.literal_block(text, text, language="bibtex")]


def bibtex(citation: dict) -> str:
    """What CITATION.cff says of the software, as one entry."""
    names = [author.get("name") or author["family-names"] for author in citation["authors"]]
    fields = {
        "title": citation["title"],
        "author": " and ".join(f"{{{name}}}" for name in names),
        "version": citation["version"],
        "license": citation["license"],
    }
    if "doi" in citation:
        fields["doi"] = citation["doi"]
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join(["@software{fedlab_nb,", *lines, "}"])


def setup(app) -> None:
    app.add_directive("citation", CitationDirective)
    app.add_directive("picture", PictureDirective)
    app.add_directive("commands", CommandsDirective)
    app.add_directive("names", NamesDirective)
