#!/usr/bin/env python3
"""Scores of the universal propagator, computed in the plainest way: dense matrices, double precision, numpy only.

Usage: universal_reference.py TRIPLES.tsv WEIGHTS.safetensors [--half] [--queries N] > SCORES.json

What src/universal computes is compared with this. Of the triples (subject, relation, object), every (total / N)-th is asked
in both directions, and all entities are scored. WEIGHTS are those of the PyTorch prototype or, as universal_weights.py
converts them, ours; --half rounds them to f16 first. Nothing is hidden from a query. The last bias of the prototype,
which is the same for all entities, is left out.
"""
import argparse
import json

import numpy as np

from universal_weights import ORDER, read


def prototype_names(ours):
    """Weights in our layout, back in the prototype's."""
    width = ours["relation.start"].size
    old = {"start": ours["relation.start"].ravel(), "q0.weight": ours["query"].T, "q0.bias": ours["query_bias"].ravel()}
    layers = lambda kind: sum(name.startswith(kind) and name.endswith(".scale") for name in ours)
    back = np.argsort(ORDER)
    for layer in range(layers("relation.")):
        of = lambda name: ours[f"relation.{layer + 1}.{name}"]
        blocks = of("mixed").reshape(-1, width, width)[back]
        old[f"rw.{layer}"] = of("kinds").reshape(-1, width)[back]
        old[f"rlin.{layer}.weight"] = np.concatenate([blocks.reshape(-1, width), of("own")]).T
        old[f"rlin.{layer}.bias"] = of("bias").ravel()
        old[f"rnorm.{layer}.weight"], old[f"rnorm.{layer}.bias"] = of("scale").ravel(), of("shift").ravel()
    for layer in range(layers("entity.")):
        of = lambda name: ours[f"entity.{layer + 1}.{name}"]
        old[f"wl.{layer}.0.weight"], old[f"wl.{layer}.0.bias"] = of("link.hidden").T, of("link.hidden_bias").ravel()
        old[f"wl.{layer}.2.weight"], old[f"wl.{layer}.2.bias"] = of("link.out").T, of("link.out_bias").ravel()
        old[f"own.{layer}.weight"], old[f"own.{layer}.bias"] = of("own").T, of("bias").ravel()
        old[f"agg.{layer}.weight"] = of("mixed").T
        old[f"norm.{layer}.weight"], old[f"norm.{layer}.bias"] = of("scale").ravel(), of("shift").ravel()
    old["mlp.0.weight"] = np.concatenate([ours["score.state"], ours["score.query"]]).T
    old["mlp.0.bias"], old["mlp.2.weight"] = ours["score.bias"].ravel(), ours["score.weights"]
    return old


def relation_graph(edges, entities, links):
    """[10, links, links]: from link a (column) to link b (row). Link r + links / 2 is the inverse of r."""
    head = np.zeros((links, entities))
    pairs = {}
    linked = np.zeros((links, len(edges)))
    for source, link, target in edges:
        head[link, source] = 1
        linked[link, pairs.setdefault((source, target), len(pairs))] = 1
    shared, together = head @ head.T, linked @ linked.T
    shares = shared / np.maximum(np.diag(shared), 1)[:, None]
    confidence = together / np.maximum(np.diag(together), 1)[:, None]
    np.fill_diagonal(confidence, 0)
    inverse = (np.arange(links) + links // 2) % links
    kinds = [shares, shares[:, inverse], shares[inverse], shares[inverse][:, inverse], confidence, confidence.T]
    weighted = np.stack([kind.T for kind in kinds])
    any_of = (weighted[:4] > 0).astype(float)
    return np.concatenate([weighted, any_of / np.maximum(any_of.sum(2, keepdims=True), 1)])


class Reference:
    """The weights over one graph."""

    def __init__(self, weights, triples):
        self.w = {name: values.astype(np.float64) for name, values in weights.items()}
        self.width = self.w["start"].size
        entities, relations = {}, {}
        ids = [(entities.setdefault(s, len(entities)), relations.setdefault(r, len(relations)),
                entities.setdefault(o, len(entities))) for s, r, o in triples]
        self.entities, self.relations = entities, relations
        self.links = 2 * len(relations)
        both = {(s, r, o) for s, r, o in ids} | {(o, r + len(relations), s) for s, r, o in ids}
        self.edges = np.array(sorted(both))
        self.kinds = relation_graph(self.edges, len(entities), self.links)

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def norm_relu(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return np.maximum(x * self.w[name + ".weight"] + self.w[name + ".bias"], 0)

    def vectors(self, link):
        """The vectors of all links, given the one that is asked for: [links, width]."""
        start = np.zeros((self.links, self.width))
        start[link] = self.w["start"]
        x, layer = start, 0
        while f"rw.{layer}" in self.w:
            sums = [kind @ (x * weight) for kind, weight in zip(self.kinds, self.w[f"rw.{layer}"])]
            x = x + self.norm_relu(self.linear(np.concatenate([*sums, x, start], 1), f"rlin.{layer}"), f"rnorm.{layer}")
            layer += 1
        return x

    def scores(self, subject, link):
        """The scores of all entities: [entities]."""
        count, width = len(self.entities), self.width
        z = self.vectors(link)
        both = np.concatenate([z, np.broadcast_to(z[link], z.shape)], 1)
        query = self.linear(z[link], "q0")
        start = np.zeros((count, width))
        start[subject] = query
        source, by, target = self.edges.T
        degree = np.bincount(target, minlength=count)[:, None] + 1.0
        scale = np.log(degree)
        scale = np.maximum(scale / scale.mean(), 1e-2)
        h, layer = start, 0
        while f"own.{layer}.weight" in self.w:
            weights = self.linear(np.maximum(self.linear(both, f"wl.{layer}.0"), 0), f"wl.{layer}.2")
            messages = h[source] * weights[by]
            total, square, most, least = start.copy(), start * start, start.copy(), start.copy()
            np.add.at(total, target, messages)
            np.add.at(square, target, messages * messages)
            np.maximum.at(most, target, messages)
            np.minimum.at(least, target, messages)
            mean = total / degree
            deviation = np.sqrt(np.maximum(square / degree - mean * mean, 1e-6))
            a = self.linear(np.concatenate([mean, most, least, deviation], 1), f"agg.{layer}")
            o = self.linear(h, f"own.{layer}") + a[:, :width] + scale * a[:, width:2 * width] + a[:, 2 * width:] / scale
            h = h + self.norm_relu(o, f"norm.{layer}")
            layer += 1
        hidden = self.linear(np.concatenate([h, np.broadcast_to(query, h.shape)], 1), "mlp.0")
        return np.maximum(hidden, 0) @ self.w["mlp.2.weight"].ravel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("triples")
    parser.add_argument("weights")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--queries", type=int, default=4)
    arguments = parser.parse_args()
    weights = read(arguments.weights)
    if arguments.half:
        weights = {name: values.astype(np.float16).astype(np.float32) for name, values in weights.items()}
    if "relation.start" in weights:
        weights = prototype_names(weights)
    with open(arguments.triples, encoding="utf-8") as file:
        triples = [tuple(line.rstrip("\n").split("\t")) for line in file]
    reference = Reference(weights, triples)
    answers = []
    for subject, relation, target in triples[:: max(1, len(triples) // arguments.queries)][: arguments.queries]:
        for entity, inverse in ((subject, False), (target, True)):
            link = reference.relations[relation] + (len(reference.relations) if inverse else 0)
            scores = reference.scores(reference.entities[entity], link)
            answers.append({"entity": entity, "relation": relation, "inverse": inverse,
                            "scores": [round(float(score), 6) for score in scores]})
    print(json.dumps({"entities": list(reference.entities), "answers": answers}))


if __name__ == "__main__":
    main()
