"""The page of a report, taken apart."""

import html.parser
import re

VOID = {"meta", "input", "img", "br", "link"}


class Page(html.parser.HTMLParser):
    """Headings, attributes and scripts; fails on elements that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.data = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.data.append((tag, ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data.append((self.open[-1] if self.open else "", data))

    def texts(self, tag):
        return [data for name, data in self.data if name == tag and data]

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self):
        return " ".join(data for tag, data in self.data if tag not in ("script", "style"))


def words(page):
    """All text, with single spaces between words."""
    return re.sub(r"\s+(?=[,;.])", "", re.sub(r"\s+", " ", page.text))
