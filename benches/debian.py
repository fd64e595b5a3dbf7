#!/usr/bin/env python3
"""The packages of a Linux distribution as a graph: a real data set of some 150,000 entities that any Debian can make.

    apt-cache dumpavail | benches/debian.py > packages.tsv
    apt-cache dumpavail | benches/debian.py --rdf > packages.nt

One fact a line: what a package depends on, recommends, breaks, …, its section, maintainer, source, and its tags, of which
every facet (`role`, `implemented-in`, …) is a relation. With `--rdf` the same facts as N-Triples, and what a package is
called, says of itself and takes on the disk as literals.
"""

import re
import sys
import urllib.parse

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


RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
TEXTS = ("Description", "Version")


def iri(kind, name):
    return f"<urn:debian:{kind}{urllib.parse.quote(name, safe='')}>"


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def statements(fields):
    """The facts as RDF, and what is no fact about two things."""
    package = iri("package/", fields["Package"])
    yield package, RDF_TYPE, iri("", "Package")
    yield package, LABEL, literal(fields["Package"])
    for field in TEXTS:
        if field in fields:
            yield package, iri("", field.lower()), literal(fields[field])
    if fields.get("Installed-Size", "").isdigit():
        yield package, iri("", "installed-size"), f'"{fields["Installed-Size"]}"^^{INTEGER}'
    for _, relation, value in facts(fields):
        of_package = relation in (field.lower() for field in PACKAGES)
        yield package, iri("", relation), iri("package/" if of_package else f"{relation}/", value)


def main():
    as_rdf = sys.argv[1:] == ["--rdf"]
    for fields in stanzas(sys.stdin):
        if "Package" in fields and as_rdf:
            for statement in statements(fields):
                print(*statement, ".")
        elif "Package" in fields:
            for fact in facts(fields):
                print(*fact, sep="\t")


main()
