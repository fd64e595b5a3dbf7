#!/usr/bin/env python3
"""The packages of a Linux distribution as a graph: a real data set of some 150,000 entities that any Debian can make.

    apt-cache dumpavail | benches/debian.py > packages.tsv

One fact a line: what a package depends on, recommends, breaks, …, its section, maintainer, source, and its tags, of which
every facet (`role`, `implemented-in`, …) is a relation.
"""

import re
import sys

PACKAGES = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances", "Breaks", "Conflicts", "Replaces", "Provides", "Built-Using")
VALUES = ("Section", "Priority", "Architecture", "Multi-Arch", "Maintainer", "Homepage", "Source")


def stanzas(lines):
    """The fields of one package after another; a line that begins with a space continues the field before."""
    fields, last = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields, last = {}, None
        elif line[0] in " \t":
            if last:
                fields[last] += line
        else:
            last, _, value = line.partition(":")
            fields[last] = value.strip()
    if fields:
        yield fields


def facts(fields):
    package = fields["Package"]
    for field in PACKAGES:
        for named in re.split(r"[,|]", fields.get(field, "")):
            # Without its version, its architectures and its qualifier.
            name = re.sub(r"[\[(:].*", "", named.strip()).strip()
            if name:
                yield package, field.lower(), name
    for field in VALUES:
        value = fields.get(field, "").strip()
        if field == "Source":
            value = f"src:{re.sub(r' .*', '', value) or package}"
        if value:
            yield package, field.lower(), value
    for tag in fields.get("Tag", "").split(","):
        facet, found, _ = tag.strip().partition("::")
        if found:
            yield package, facet, tag.strip()


def main():
    for fields in stanzas(sys.stdin):
        if "Package" in fields:
            for fact in facts(fields):
                print(*fact, sep="\t")


main()
