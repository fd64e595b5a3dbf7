#!/usr/bin/env python3
"""Two ideas for ranking, tried on the validation split beside what the program does, before anything is built.

    ruleguider mine DATA --samples 100000 --out rules.tsv
    ruleguider run DATA --set system=embedding --out embedding            # ComplEx
    benches/ideas.py DATA rules.tsv [--embedding embedding/embedding.safetensors] [--longest 2]

DATA is a folder with train.txt, valid.txt and test.txt. Rules are the cyclic ones of the file. Ranks are filtered, in both
directions, ties at their mean. Needs NumPy and SciPy; results/ideas.md has what came of it.

*Groundings.* A rule has one confidence, however many paths lead from the subject to a candidate. Here it has one for 1, 2,
3, 4, 6, 9, 16 and more paths: counted over training facts, smoothed towards the rule's own by ten predictions, made
monotone, and scaled so that their mean is the rule's.

*Situations.* The blend's weights depend on relation and direction. Here each weight is a sum: a common part, one of the
relation, and one for each situation that a candidate is in (distance, whether (candidate, relation) and (subject,
relation) occur, degree of the subject, margins of both members). A sum of gated parts decomposes as exactly as before.
Weights are fitted by softmax on two thirds of the validation queries and judged on the rest; the strength of the priors is
the best of a few for either blend, which favours the one with more of them.
"""

import argparse
import json
import re
import struct
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

STARTS = np.array([1, 2, 3, 4, 6, 9, 16])
SMOOTHING = 10.0
UNSEEN = 5
SOURCES = 3000
QUERIES = 3000
FOLDS = 3
ATOM = re.compile(r"^(.*)\(([XYA-C]),([XYA-C])\)$")
RESERVED_LINKS = 3


class Graph:
    """The splits by number; links are relations `r` and their inverses `~r`."""

    def __init__(self, folder, entities=None, relations=None):
        lines = {split: (Path(folder) / f"{split}.txt").read_text().splitlines() for split in ("train", "valid", "test")}
        named = {split: [tuple(line.split("\t")) for line in of if line] for split, of in lines.items()}
        both = [fact for split in named.values() for fact in split]
        self.entities = entities or {name: at for at, name in enumerate(dict.fromkeys(n for h, _, t in both for n in (h, t)))}
        self.relations = relations or {name: at for at, name in enumerate(dict.fromkeys(r for _, r, _ in both))}
        known = [(h, r, t) for h, r, t in both if h in self.entities and t in self.entities and r in self.relations]
        number = {fact: (self.entities[fact[0]], self.relations[fact[1]], self.entities[fact[2]]) for fact in known}
        of = {split: np.array([number[fact] for fact in facts if fact in number]) for split, facts in named.items()}
        self.valid, self.size = of["valid"], len(self.entities)
        self.links = {}
        for relation in range(len(self.relations)):
            own = of["train"][of["train"][:, 1] == relation]
            matrix = sp.csr_matrix((np.ones(len(own)), (own[:, 0], own[:, 2])), shape=(self.size, self.size))
            matrix.data[:] = 1
            self.links[relation], self.links[~relation] = matrix, matrix.T.tocsr()
        self.all = sum(self.links.values()).tocsr()
        self.all.data[:] = 1
        self.answers = defaultdict(set)
        for head, relation, tail in np.concatenate(list(of.values())):
            self.answers[head, relation].add(tail)
            self.answers[tail, ~relation].add(head)

    def follow(self, body, sources):
        """How many paths of this body lead from each source to each entity."""
        matrix = self.links[body[0]][sources]
        for link in body[1:]:
            matrix = matrix @ self.links[link]
        return matrix.tocsr()


def rules_of(path, graph, longest):
    """Cyclic rules by head: confidence and body, as links from X to Y."""
    rules = defaultdict(list)
    for line in Path(path).read_text().splitlines():
        predicted, correct, _, text = line.split("\t")
        head, body = text.split(" <= ", 1)
        head, parts = ATOM.match(head), [ATOM.match(part) for part in re.split(r"(?<=\)), ", body)]
        if not head or head.groups()[1:] != ("X", "Y") or None in parts or len(parts) > longest:
            continue
        at, links = "X", []
        for name, first, second in (part.groups() for part in parts):
            if name not in graph.relations or at not in (first, second):
                break
            forward = first == at
            links.append(graph.relations[name] if forward else ~graph.relations[name])
            at = second if forward else first
        confidence = int(correct) / (int(predicted) + UNSEEN)
        if len(links) == len(parts) and at == "Y" and head.group(1) in graph.relations and confidence >= 0.01:
            rules[graph.relations[head.group(1)]].append((confidence, tuple(links)))
    return rules


def monotone(correct, predicted):
    """Confidences that do not fall with the number of paths: neighbours that do are pooled."""
    blocks = []
    for pair in zip(correct, predicted):
        blocks.append([*pair, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            correct, predicted, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + correct, blocks[-1][1] + predicted, blocks[-1][2] + count]
    return np.concatenate([np.full(count, correct / predicted) for correct, predicted, count in blocks])


def by_groundings(graph, asked, body, confidence, random):
    """The confidence of a rule for each bucket of the number of paths; None if it fires nowhere."""
    sources = np.flatnonzero(np.diff(graph.links[body[0]].indptr))
    if len(sources) > SOURCES:
        sources = random.choice(sources, SOURCES, replace=False)
    paths = graph.follow(body, sources)
    if paths.nnz == 0:
        return None
    hits = paths.multiply(graph.links[asked][sources] > 0).tocsr()
    count = lambda data: np.bincount(np.searchsorted(STARTS, data[data > 0], side="right") - 1, minlength=len(STARTS))
    predicted, correct = count(paths.data).astype(float), count(hits.data).astype(float)
    mean = correct.sum() / (predicted.sum() + UNSEEN)
    own = monotone(correct + SMOOTHING * mean, predicted + SMOOTHING)
    scale = confidence / max((own * predicted).sum() / predicted.sum(), 1e-9)
    return np.minimum(own * min(scale, 10.0), 0.999)


def reciprocal_rank(scores, target):
    own = scores[target]
    return 1 / (1 + (scores > own).sum() + ((scores == own).sum() - 1) / 2)


class Tables:
    """ComplEx from a run."""

    def __init__(self, path):
        content = Path(path).read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        names = header["__metadata__"]
        self.entities = {name: at for at, name in enumerate(json.loads(names["entities"]))}
        self.relations = {name: at for at, name in enumerate(json.loads(names["relations"]))}

        def table(name):
            first, end = header[name]["data_offsets"]
            return np.frombuffer(content[8 + length + first : 8 + length + end], np.float32).reshape(header[name]["shape"])

        self.rows, self.links = table("entities"), table("relations")

    def log_probabilities(self, subjects, link):
        place = RESERVED_LINKS + (2 * link if link >= 0 else 2 * ~link + 1)
        half = self.rows.shape[1] // 2
        (real, imaginary), relation = np.split(self.rows[subjects], 2, axis=1), self.links[place]
        query = [real * relation[:half] - imaginary * relation[half:], real * relation[half:] + imaginary * relation[:half]]
        scores = np.concatenate(query, axis=1) @ self.rows.T
        scores -= scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def candidates_of(rules, embedding, open_ones):
    """All entities of a small graph, else the best of both members."""
    if len(open_ones) < 300:
        return np.flatnonzero(open_ones)
    by_rules = np.flatnonzero(open_ones & (rules > 0))
    by_rules = by_rules[np.argsort(-rules[by_rules])[:100]]
    return np.unique(np.concatenate([by_rules, [one for one in np.argsort(-embedding)[:120] if open_ones[one]][:60]]).astype(int))


def look(graph, rules, tables):
    """Ranks of the rules alone with both confidences, and the queries for the blend."""
    random = np.random.default_rng(1)
    valid = graph.valid if len(graph.valid) <= QUERIES else graph.valid[random.choice(len(graph.valid), QUERIES, replace=False)]
    degree = np.asarray(graph.all.sum(axis=1)).ravel()
    alone, queries = [], []
    for relation in range(len(graph.relations)):
        own = valid[valid[:, 1] == relation]
        for asked, subjects, targets in ((relation, own[:, 0], own[:, 2]), (~relation, own[:, 2], own[:, 0])):
            if len(own) == 0:
                continue
            sums = [sp.csr_matrix((len(own), graph.size)) for _ in range(2)]
            for confidence, body in rules[relation]:
                body = body if asked >= 0 else tuple(~link for link in reversed(body))
                counted = by_groundings(graph, asked, body, confidence, random)
                paths = graph.follow(body, subjects)
                if counted is None or paths.nnz == 0:
                    continue
                bucket = np.searchsorted(STARTS, paths.data, side="right") - 1
                for at, chance in enumerate((np.full(paths.nnz, min(confidence, 0.999)), counted[bucket])):
                    said = paths.copy()
                    said.data = -np.log1p(-chance)
                    sums[at] = sums[at] + said
            frequency = np.asarray(graph.links[asked].sum(axis=0)).ravel()
            opinions = tables.log_probabilities(subjects, asked) if tables else None
            beside = np.asarray(graph.all[subjects].todense()) > 0 if tables else None
            two = (graph.all[subjects] @ graph.all).tocsr() if tables else None
            for at, (subject, target) in enumerate(zip(subjects, targets)):
                open_ones = np.ones(graph.size, bool)
                open_ones[[one for one in graph.answers[subject, asked] if one != target]] = False
                said = [np.asarray(each[at].todense()).ravel() for each in sums]
                alone.append([reciprocal_rank(np.where(open_ones, one + 1e-9 * frequency, -1), target) for one in said])
                if not tables:
                    continue
                chosen = candidates_of(said[0], opinions[at], open_ones)
                if target not in chosen:
                    queries.append(None)
                    continue
                chance = [1 - np.exp(-one[chosen]) for one in said]
                linked, taken = beside[at][chosen], frequency[chosen] > 0
                back = np.asarray(graph.links[~asked][subject].todense()).ravel()[chosen] > 0
                features = [np.log(np.maximum(chance[0], 1e-3)), chance[0] <= 0, opinions[at][chosen], linked, back, taken]
                features += [np.log1p(frequency[chosen]), np.log(np.maximum(chance[1], 1e-3))]
                near = np.asarray(two[at].todense()).ravel()[chosen] > 0
                margin = [np.diff(np.sort(one[chosen])[-2:])[0] > least for one, least in ((opinions[at], 1.0), (said[0], 0.5))]
                every = lambda value: np.full(len(chosen), value)
                has = graph.links[asked].indptr[subject + 1] > graph.links[asked].indptr[subject]
                situation = [~linked & near, ~linked & ~near, taken, every(has)]
                situation += [every(degree[subject] > np.median(degree[degree > 0])), *map(every, margin)]
                place = int(np.flatnonzero(chosen == target)[0])
                columns = [np.stack(of, axis=1).astype(float) for of in (features, situation)]
                queries.append((asked < 0, relation, *columns, place))
    return np.array(alone), queries


def judged(queries, features, gated, pull, hold):
    """Reciprocal ranks of queries by weights that were fitted to others; 0 where the answer is no candidate."""
    found = [at for at, query in enumerate(queries) if query]
    scale = np.concatenate([queries[at][2] for at in found]).std(axis=0) + 1e-6
    fold = np.random.default_rng(7).permutation(len(queries)) % FOLDS
    ranks = np.zeros(len(queries))

    def design(query):
        own = (query[2] / scale)[:, features]
        parts = [own * query[3][:, at : at + 1] for at in range(query[3].shape[1])] if gated else []
        return np.concatenate([own, *parts], axis=1)

    for head in (False, True):
        those = [at for at in found if queries[at][0] == head]
        place = {relation: at for at, relation in enumerate(sorted({queries[at][1] for at in those}))}
        designs = {at: design(queries[at]) for at in those}
        count, width = len(features), next(iter(designs.values())).shape[1]
        for part in range(FOLDS):
            learnt = [at for at in those if fold[at] != part]
            ends = np.cumsum([0] + [len(designs[at]) for at in learnt])
            rows, starts, sizes = np.concatenate([designs[at] for at in learnt]), ends[:-1], np.diff(ends)
            right = starts + np.array([queries[at][4] for at in learnt])
            owner = np.repeat([place[queries[at][1]] for at in learnt], sizes)
            held = np.concatenate([np.full(count, 1e-3), np.full(width - count, hold)])

            def loss(weights):
                common, own = weights[:width], weights[width:].reshape(-1, count)
                scores = rows @ common + (rows[:, :count] * own[owner]).sum(axis=1)
                most = np.maximum.reduceat(scores, starts)
                chance = np.exp(scores - np.repeat(most, sizes))
                total = np.add.reduceat(chance, starts)
                chance /= np.repeat(total, sizes)
                value = -(scores[right] - most - np.log(total)).sum()
                chance[right] -= 1
                slope = np.zeros_like(own)
                np.add.at(slope, owner, rows[:, :count] * chance[:, None])
                value += (held * common**2).sum() + pull * (own**2).sum()
                return value, np.concatenate([rows.T @ chance + 2 * held * common, (slope + 2 * pull * own).ravel()])

            start = np.zeros(width + len(place) * count)
            weights = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150}).x
            own = weights[width:].reshape(-1, count)
            for at in (at for at in those if fold[at] == part):
                scores = designs[at] @ weights[:width] + designs[at][:, :count] @ own[place[queries[at][1]]]
                ranks[at] = reciprocal_rank(scores, queries[at][4])
    return ranks


def compared(what, before, after):
    gain = after - before
    spread = 1.96 * gain.std() / np.sqrt(len(gain))
    print(f"{what}: MRR {100 * before.mean():.2f} -> {100 * after.mean():.2f}, {100 * gain.mean():+.2f} ± {100 * spread:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("rules")
    parser.add_argument("--embedding")
    parser.add_argument("--longest", type=int, default=3, help="the longest body of a rule")
    given = parser.parse_args()
    tables = Tables(given.embedding) if given.embedding else None
    graph = Graph(given.data, *((tables.entities, tables.relations) if tables else ()))
    rules = rules_of(given.rules, graph, given.longest)
    alone, queries = look(graph, rules, tables)
    print(f"{given.data}: {len(alone)} validation queries, {sum(map(len, rules.values()))} rules")
    compared("rules alone, by groundings", alone[:, 0], alone[:, 1])
    if not tables:
        return
    plain, more = list(range(7)), list(range(8))
    best = lambda *tried: max(tried, key=np.mean)
    linear = best(*(judged(queries, plain, False, pull, 0) for pull in (10, 3)))
    compared("blend, groundings as a feature", linear, best(*(judged(queries, more, False, pull, 0) for pull in (10, 3))))
    gated = [(pull, hold) for pull in (10, 3) for hold in (10, 3)]
    compared("blend, gated by situation", linear, best(*(judged(queries, plain, True, *of) for of in gated)))


if __name__ == "__main__":
    main()
