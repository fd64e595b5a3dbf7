#!/usr/bin/env python3
"""Makes weights/universal.safetensors, in f16, from the weights of the PyTorch prototype of the universal propagator.

Usage: universal_weights.py PROTOTYPE.safetensors OUT.safetensors

Linear maps are transposed (ours are [inputs, outputs]), and the ten kinds of edges between links are put into the order in
which our relation network computes them. Needs numpy only.
"""
import json
import struct
import sys

import numpy as np

# Of the prototype's kinds: shares and yes/no at heads (of heads, of tails), the same at tails, then the two of pairs.
ORDER = [0, 2, 6, 8, 1, 3, 7, 9, 4, 5]


def read(path):
    """The matrices of a safetensors file, by name, as f32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    kinds = {"F32": np.float32, "F16": np.float16}
    matrices = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).astype(np.float32)
        matrices[name] = values.reshape(entry["shape"])
    return matrices


def write(path, matrices, metadata):
    """Writes matrices in f16."""
    header, begin = {"__metadata__": metadata}, 0
    for name in sorted(matrices):
        values = matrices[name]
        header[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [begin, begin + 2 * values.size]}
        begin += 2 * values.size
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(matrices):
            file.write(np.ascontiguousarray(matrices[name]).astype("<f2").tobytes())


def convert(old):
    """Our names and layout."""
    width = old["start"].size
    layers = sum(name.startswith("own.") and name.endswith(".weight") for name in old)
    relation_layers = sum(name.startswith("rw.") for name in old)
    row = lambda name: old[name].reshape(1, -1)
    new = {"relation.start": row("start"), "query": old["q0.weight"].T, "query_bias": row("q0.bias")}
    for layer in range(relation_layers):
        to = f"relation.{layer + 1}."
        blocks = old[f"rlin.{layer}.weight"].T.reshape(-1, width, width)
        new[to + "kinds"] = old[f"rw.{layer}"][ORDER].reshape(-1, 1)
        new[to + "mixed"] = blocks[ORDER].reshape(-1, width)
        new[to + "own"] = blocks[len(ORDER):].reshape(-1, width)
        new[to + "bias"] = row(f"rlin.{layer}.bias")
        new[to + "scale"] = row(f"rnorm.{layer}.weight")
        new[to + "shift"] = row(f"rnorm.{layer}.bias")
    for layer in range(layers):
        to = f"entity.{layer + 1}."
        new[to + "link.hidden"] = old[f"wl.{layer}.0.weight"].T
        new[to + "link.hidden_bias"] = row(f"wl.{layer}.0.bias")
        new[to + "link.out"] = old[f"wl.{layer}.2.weight"].T
        new[to + "link.out_bias"] = row(f"wl.{layer}.2.bias")
        new[to + "own"] = old[f"own.{layer}.weight"].T
        new[to + "mixed"] = old[f"agg.{layer}.weight"].T
        new[to + "bias"] = row(f"own.{layer}.bias")
        new[to + "scale"] = row(f"norm.{layer}.weight")
        new[to + "shift"] = row(f"norm.{layer}.bias")
    # The last bias is the same for all entities: it changes neither ranking nor softmax, and we have none.
    new["score.state"] = old["mlp.0.weight"].T[:width]
    new["score.query"] = old["mlp.0.weight"].T[width:]
    new["score.bias"] = row("mlp.0.bias")
    new["score.weights"] = row("mlp.2.weight")
    settings = {"width": width, "layers": layers, "relation_layers": relation_layers, "whole": True}
    return new, settings


if __name__ == "__main__":
    matrices, settings = convert(read(sys.argv[1]))
    write(sys.argv[2], matrices, {"settings": json.dumps(settings), "made_by": "universal_weights.py"})
