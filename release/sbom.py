#!/usr/bin/env python3
"""The crates that the program is made of, as a CycloneDX 1.5 document: sbom.py > sbom.cdx.json."""
import json
import subprocess
import sys

metadata = json.loads(
    subprocess.check_output(["cargo", "metadata", "--locked", "--format-version", "1", *sys.argv[1:]])
)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = next(id for id, package in packages.items() if package["name"] == "ruleguider-cli")

# What the program links to; what only its tests and build scripts need is left out.
linked, waiting = set(), [root]
while waiting:
    current = waiting.pop()
    if current in linked:
        continue
    linked.add(current)
    for dependency in nodes[current]["deps"]:
        if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
            waiting.append(dependency["pkg"])


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, kind="library"):
    described = {
        "type": kind,
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package.get("license"):
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return described


json.dump(
    {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(packages[root], "application")},
        "components": sorted((component(packages[id]) for id in linked - {root}), key=lambda one: one["purl"]),
        "dependencies": sorted(
            (
                {
                    "ref": reference(packages[id]),
                    "dependsOn": sorted(
                        {reference(packages[other["pkg"]]) for other in nodes[id]["deps"] if other["pkg"] in linked}
                    ),
                }
                for id in linked
            ),
            key=lambda one: one["ref"],
        ),
    },
    sys.stdout,
    indent=1,
)
