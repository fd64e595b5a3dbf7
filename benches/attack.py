#!/usr/bin/env python3
"""MITRE ATT&CK as a graph: its STIX bundle in, a fact a line out.

    curl -LO https://raw.githubusercontent.com/mitre-attack/attack-stix-data/master/enterprise-attack/enterprise-attack.json
    benches/attack.py enterprise-attack.json | gzip > attack.tsv.gz
    benches/attack.py --dated enterprise-attack.json > attack_dated.tsv

Things are named by their number and name, such as `T1105 Ingress Tool Transfer`. Facts are the relationships (`uses`,
`mitigates`, `detects`, …), the tactics and platforms of a thing, and the analytics of a detection. What is revoked or
deprecated is left out, with every fact about it. With `--dated` a fourth column has the day of each statement.
"""

import json
import sys


def is_current(thing):
    return not thing.get("revoked") and not thing.get("x_mitre_deprecated")


def number(thing):
    """Such as `T1105`; `None` for what is no part of the matrix, as an identity or a marking."""
    references = thing.get("external_references", [])
    return next((r["external_id"] for r in references if r.get("source_name") == "mitre-attack" and "external_id" in r), None)


def facts(bundle):
    """Subject, relation, object, and the object of the bundle that states it."""
    current = [thing for thing in bundle["objects"] if is_current(thing)]
    names = {thing["id"]: f"{number(thing)} {thing['name'].strip()}" for thing in current if number(thing) and "name" in thing}
    tactics = {thing["x_mitre_shortname"]: names[thing["id"]] for thing in current if thing["type"] == "x-mitre-tactic"}
    for thing in current:
        if thing["type"] == "relationship":
            ends = names.get(thing["source_ref"]), names.get(thing["target_ref"])
            if all(ends):
                yield ends[0], thing["relationship_type"], ends[1], thing
        if thing["id"] not in names:
            continue
        name = names[thing["id"]]
        for phase in thing.get("kill_chain_phases", []):
            if phase["phase_name"] in tactics:
                yield name, "has-tactic", tactics[phase["phase_name"]], thing
        for platform in thing.get("x_mitre_platforms", []):
            yield name, "platform", f"platform:{platform}", thing
        for analytic in thing.get("x_mitre_analytic_refs", []):
            if analytic in names:
                yield name, "has-analytic", names[analytic], thing


def main(arguments):
    dated = "--dated" in arguments
    [path] = [argument for argument in arguments if argument != "--dated"]
    with open(path, encoding="utf-8") as file:
        bundle = json.load(file)
    for subject, relation, target, source in facts(bundle):
        day = [source.get("created", "")[:10]] if dated else []
        print(subject, relation, target, *day, sep="\t")


main(sys.argv[1:])
