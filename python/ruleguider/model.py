"""`learn`, `open`, and the `Model` they give."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _ruleguider
from ._inputs import Entities, Names, entities, noted_facts, on_path, pairs, plain
from ._inputs import facts as given_facts
from ._progress import Progress, shown
from .graph import SPLIT, Data, Graph
from .results import (
    Completed,
    Direction,
    Doubts,
    Evaluation,
    Explanation,
    Facts,
    Prediction,
    Predictions,
    Ranks,
    Reasons,
    Relations,
    Scores,
    Ties,
)
from .rules import Rules

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Name = str | int
PathName = str | os.PathLike[str]
# An embedding model. A union, because mypy's stubtest takes a literal of several values for one.
Embedding = Literal["complex"] | Literal["distmult"] | Literal["rotate"] | Literal["conve"]
# What became of a fact since a model was learnt (added, removed or rejected), with its confidence and source.
Edits = dict[tuple[str, str, str], tuple[str, float | None, str | None]]


def learn(
    data: Data | None = None,
    *,
    minutes: float | None = None,
    out: PathName | None = None,
    seed: int = 1,
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    model: Embedding | None = None,
    device: str = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    split: Sequence[float] | None = SPLIT,
    split_time: str | int | None = None,
    header: bool | None = None,
    update: PathName | None = None,
    learn_all: bool = False,
    instant: bool = False,
    progress: Progress = True,
) -> Model:
    """Learns from `data` (a `Graph`, or anything that makes one; by default the demonstration graph) and ranks its test
    split.

    It takes `minutes` (10 by default); if `config` names a configuration, there is no time limit by default. `config` is the
    name of a configuration, a TOML file, or a dict with the keys of the TOML, nested or dotted; the key `base` names a
    configuration to start from. `out` is the run directory (by default `runs/` and the name of the data); an existing run
    is resumed. Ctrl-C keeps a checkpoint and raises `KeyboardInterrupt`; the same call resumes from there. `split_time`
    holds out the facts of that day and later; those before it are learnt from.

    `model` is the embedding model, with settings that suit it: `complex` (the default), `distmult`, `rotate` or `conve`.

    >>> model = rg.learn(graph, out=folder / "mine", config={"system": "rules", "rules.samples": 500}, progress=False)
    >>> model
    Model(.../mine: demonstration, rules, mrr=...)

    `update` is the directory of a finished run; `data` is the new version of its data. Networks start from that run's
    weights, its rules are recounted, its settings are kept, and facts stay in their splits. `out` is then beside it by
    default, with `-updated` added to the name. With `learn_all` the model is learnt once more after the figures are
    measured, from all facts including those held out, for the best answers in use; this takes about as long again.

    >>> facts = [(f"a{i % 12}", "r", f"b{i % 7}") for i in range(60)]
    >>> quick = {"system": "rules", "rules.samples": 500}
    >>> before = rg.learn(facts, out=folder / "before", config=quick, progress=False)
    >>> more = facts + [("a0", "r", "newcomer"), ("a1", "r", "newcomer")]
    >>> now = rg.learn(more, update=before.path, learn_all=True, progress=False)
    >>> now.results["update"]["facts_added"], now.results["learnt_everything"]["facts"]
    (2, 62)

    With `instant` nothing is trained: weights that were trained on other graphs answer, and calibration and ranking take
    seconds. `progress` shows bars, nothing (`False`), or is a function that is called with the stage, a step and figures;
    if it returns something true, the current stage ends early with the best it has.

    >>> seen = []
    >>> told = lambda stage, step, figures: seen.append(stage)
    >>> model = rg.learn(graph, out=folder / "instant", instant=True, progress=told)
    >>> model.results["system"], "ranking" in seen
    ('blend', True)
    """
    if update is not None and data is None:
        raise ValueError("update: expected `data` too, the new version of the run's data")
    if data is None:
        graph = Graph.demonstration()
    else:
        # An update divides the new facts itself.
        shares = split if update is None else None
        graph = Graph.of(data, split=shares, seed=seed, header=header, split_time=split_time)
    named = settings = None
    if isinstance(config, Mapping):
        settings = json.dumps(config, default=plain)
    elif config is not None:
        named = os.fspath(config)
    with shown(progress) as bars:
        learnt = _ruleguider.Model.learn(
            graph._graph,
            minutes,
            None if out is None else os.fspath(out),
            seed,
            named,
            settings,
            device,
            threads,
            tensorboard,
            None if update is None else os.fspath(update),
            split,
            learn_all,
            instant,
            model,
            bars,
        )
    return Model(learnt)


def ask(
    data: Any, subject: Name, relation: Name, *, top: int = 10, device: str = "auto", threads: int | None = None
) -> Prediction:
    """The `top` best answers to (subject, relation, ?) straight from `data` (a `Graph`, or anything that makes one): nothing
    is learnt, weights that were trained on other graphs answer, with reasons. Probabilities are rough: they are fitted to a
    few facts that are taken away and asked for.

    >>> rg.ask(graph, "Ilse_Hagenthal", "cousin_of", top=3)[0].to_dict()["probability_rough"]
    True
    """
    graph = Graph.of(data, split=None)
    with tempfile.TemporaryDirectory(prefix="ruleguider-") as folder:
        model = Model(_ruleguider.Model.instant(graph._graph, os.path.join(folder, "run"), device, threads))
        return model.predict(subject, relation, top=top)


def open(
    path: PathName,
    *,
    device: str = "auto",
    threads: int | None = None,
    beam: int | None = None,
) -> Model:
    """Opens the run at `path`, which has its own copy of its data; `beam` is the walker's beam width.

    >>> rg.open(model.path).path == model.path
    True
    """
    return Model(_ruleguider.Model.open(os.fspath(path), device, threads, beam))


class Model:
    """A trained model, ready to answer. It can be used from many threads at once."""

    __slots__ = ("_edits", "_learnt", "_model", "_waiting")

    def __init__(self, learnt: _ruleguider.Model, edits: Edits | None = None) -> None:
        # Edits are always made to the model as it was learnt, so that they can be undone.
        self._learnt = self._model = learnt
        self._edits: Edits = edits or {}
        self._waiting = 0
        if self._edits:
            self._model, self._waiting = learnt.with_edits(_lists(self._edits))

    def predict(
        self,
        subject: Name,
        relation: Name,
        *,
        top: int = 10,
        among: Entities | None = None,
        not_among: Entities | None = None,
        through: Names = (),
        without: Names = (),
        max_hops: int | None = None,
    ) -> Prediction:
        """The `top` best answers to (subject, relation, ?) that the graph does not have, each with its reason. Entities
        and relations by name or label; `~relation` asks for heads.

        Answers are `among` some entities and `not_among` others: the name of a type, a file with an entity a line, or a list
        of entities. `through`, `without` and `max_hops` say by which paths: only by these relations, through an entity of
        this type, with nothing of that, of at most so many facts.

        >>> p = model.predict("Ilse_Hagenthal", "~parent_of", top=2)
        >>> p.inverse, len(p) <= 2
        (True, True)
        >>> two = [answer.entity for answer in p]
        >>> [a.entity for a in model.predict("Ilse_Hagenthal", "~parent_of", not_among=two[:1], top=1)] == two[1:2]
        True
        """
        wanted = (entities(among), entities(not_among), on_path(through, without, max_hops))
        return Prediction(json.loads(self._model.predict(str(subject), str(relation), _at_least_one(top), wanted)))

    def predict_many(
        self,
        queries: Iterable[tuple[Name, Name]] | Any,
        *,
        top: int = 10,
        reasons: bool = True,
        among: Entities | None = None,
        not_among: Entities | None = None,
        through: Names = (),
        without: Names = (),
        max_hops: int | None = None,
        progress: Progress = True,
    ) -> Predictions:
        """The answers to many queries: pairs of subject and relation, or a frame or an array with two columns.

        Looking for reasons takes most of the time, and answers without one are left out, so there may be fewer than `top`.
        With `reasons=False` there are scores and probabilities only, for all candidates, at little more than the cost of
        ranking. Which answers are wanted is said as for `predict`.

        >>> many = model.predict_many([("Ilse_Hagenthal", "cousin_of"), ("Ilse_Hagenthal", "sibling_of")], progress=False)
        >>> sorted(many.to_polars()["query"].unique().to_list())
        [0, 1]
        """
        wanted = (entities(among), entities(not_among), on_path(through, without, max_hops))
        with shown(progress) as bars:
            return Predictions(self._model.predict_many(pairs(queries), _at_least_one(top), reasons, wanted, bars))

    def explain(self, subject: Name, relation: Name, object: Name) -> Explanation:
        """Why `object` is, or is not, an answer to (subject, relation, ?).

        >>> first = model.predict("Ilse_Hagenthal", "cousin_of")[0]
        >>> model.explain("Ilse_Hagenthal", "cousin_of", first.entity).rank
        1
        """
        return Explanation(json.loads(self._model.explain(str(subject), str(relation), str(object))))

    def explain_many(self, facts: Iterable[Sequence[Name]] | Any, *, reasons: int = 5, progress: bool = True) -> Reasons:
        """The best reasons for each of many facts, a row a reason: triples of subject, relation and object, or a frame or
        an array. A fact of the graph is asked with itself taken out; an unknown name gives a row with an error.

        >>> facts = model.graph.to_pandas("test").head(3)
        >>> sorted(set(model.explain_many(facts, progress=False).columns()["line"]))
        [1, 2, 3]
        """
        with shown(progress) as bars:
            rows = self._model.explain_many(given_facts(facts), _at_least_one(reasons), bars)
        return Reasons({"facts": json.loads(rows)})

    def score(
        self,
        facts: Iterable[Sequence[Name]] | Any,
        *,
        threshold: float | Literal["auto"] | None = None,
        progress: bool = True,
    ) -> Scores:
        """The probability, the ranks and the best reason of many facts: triples of subject, relation and object, or a frame
        or an array. A fact of the graph is asked with itself taken out; an unknown name gives a row with an error.

        With `threshold="auto"` the key `true` says whether a fact is taken to be true, by a threshold for each relation
        that is fitted on the validation facts; a number is a probability.

        >>> facts = model.graph.to_pandas("test")
        >>> scores = model.score(facts, threshold="auto", progress=False)
        >>> len(scores) == len(facts), sum(scores.columns()["true"]) > len(facts) / 2
        (True, True)
        """
        limit = None if threshold is None else str(threshold)
        with shown(progress) as bars:
            return Scores({"facts": json.loads(self._model.score(given_facts(facts), limit, bars))})

    def relations(self, subject: Name, object: Name, *, top: int = 10) -> Relations:
        """The `top` best relations from `subject` to `object` that the graph does not have, each with its reason.

        >>> first = model.predict("Ilse_Hagenthal", "cousin_of")[0]
        >>> "cousin_of" in model.relations("Ilse_Hagenthal", first.entity).columns()["relation"]
        True
        """
        return Relations(json.loads(self._model.relations(str(subject), str(object), _at_least_one(top))))

    def doubt(
        self, relation: str | Sequence[str] | None = None, *, top: int = 100, progress: bool = True
    ) -> Doubts:
        """The `top` facts of the graph that the rest speaks against, worst first: each is asked with itself taken out.

        >>> doubts = model.doubt("sibling_of", top=3, progress=False)
        >>> len(doubts), set(doubts.columns()["relation"])
        (3, {'sibling_of'})
        """
        relations = [relation] if isinstance(relation, str) else list(relation or [])
        with shown(progress) as bars:
            return Doubts(json.loads(self._model.doubt(relations, _at_least_one(top), bars)))

    @overload
    def complete(
        self,
        relation: str | Sequence[str] | None = None,
        *,
        top: int | None = None,
        min_probability: float | None = None,
        held_out: Literal["hide", "show", "only"] = "hide",
        subjects: Entities | None = None,
        objects: Entities | None = None,
        through: Names = (),
        without: Names = (),
        max_hops: int | None = None,
        out: None = None,
        progress: Progress = True,
    ) -> Facts: ...
    @overload
    def complete(
        self,
        relation: str | Sequence[str] | None = None,
        *,
        top: int | None = None,
        min_probability: float | None = None,
        held_out: Literal["hide", "show", "only"] = "hide",
        subjects: Entities | None = None,
        objects: Entities | None = None,
        through: Names = (),
        without: Names = (),
        max_hops: int | None = None,
        out: PathName,
        progress: Progress = True,
    ) -> Completed: ...
    def complete(
        self,
        relation: str | Sequence[str] | None = None,
        *,
        top: int | None = None,
        min_probability: float | None = None,
        held_out: Literal["hide", "show", "only"] = "hide",
        subjects: Entities | None = None,
        objects: Entities | None = None,
        through: Names = (),
        without: Names = (),
        max_hops: int | None = None,
        out: PathName | None = None,
        progress: Progress = True,
    ) -> Facts | Completed:
        """The missing facts of a relation, of several, or of all, best first. Without `top`, those with a probability of
        at least 0.1. Facts of the data that were held out are counted (`recovered` of `hidden`) and not listed, unless
        `held_out` is `show` or `only`. With `out` they are written there as by `ruleguider complete`: in the format given by the file
        extension, in bounded memory, resumed if interrupted. `subjects` and `objects` say which facts are wanted, as `among`
        does for `predict`; subjects that are not wanted are not asked.

        >>> facts = model.complete("cousin_of", top=5, progress=False)
        >>> len(facts), facts[0].relation
        (5, 'cousin_of')
        """
        relations = [relation] if isinstance(relation, str) else list(relation or [])
        most = None if top is None else _at_least_one(top)
        file = None if out is None else os.fspath(out)
        wanted = (entities(subjects), entities(objects), on_path(through, without, max_hops))
        with shown(progress) as bars:
            said = json.loads(self._model.complete(relations, most, min_probability, held_out, wanted, file, bars))
        return Facts(said) if out is None else Completed(said)

    def evaluate(
        self,
        split: Literal["test", "valid"] = "test",
        *,
        direction: Direction | None = None,
        ties: Ties = "realistic",
        leave_out_unseen: bool = False,
        all_queries: bool = False,
        strata: bool = False,
        calibration: bool = False,
        faithfulness: int | None = None,
        progress: Progress = True,
    ) -> Evaluation:
        """Ranks the true answers of a split, filtered. `direction` is `tail`, `head` or `both`; by default that of the run: both
        for a graph of one's own.

        A split that would need more than 10**11 scores is represented by an even sample, unless `all_queries` is true.

        With `strata`, there are figures by situation too: how far the answer is from the subject, whether the graph has it
        with this relation, how much is known of the subject, and how many rules predict the answer. With `calibration`,
        probabilities are checked, which asks for the best answers once more. `faithfulness` is a number of queries: are the
        reasons shown for their best answers the cause of these answers?

        >>> model.evaluate(direction="both", progress=False).mrr > 0.5
        True
        >>> strata = model.evaluate(strata=True, progress=False).strata
        >>> sorted(set(strata.columns()["by"]))
        ['degree', 'distance', 'rules', 'seen']
        """
        with shown(progress) as bars:
            said, ranks = self._model.evaluate(
                split,
                direction,
                ties,
                leave_out_unseen,
                all_queries,
                strata,
                calibration,
                None if faithfulness is None else _at_least_one(faithfulness),
                bars,
            )
            return Evaluation(json.loads(said), Ranks(json.loads(ranks)))

    def add(
        self,
        facts: Iterable[Sequence[Name]] | Any = (),
        *,
        remove: Iterable[Sequence[Name]] | Any = (),
        reject: Iterable[Sequence[Name]] | Any = (),
    ) -> Model:
        """The same model on its graph with `facts` added, others removed, and some rejected, which are never predicted: a new
        model, in memory, that answers at once. Nothing is trained; rules and networks along paths use new facts and new
        entities, and `waiting` counts the facts that only `update` can learn from. A frame may have columns `confidence`
        and `source`.

        >>> more = model.add([("Ada", "parent_of", "Ilse_Hagenthal")])
        >>> more.predict("Ilse_Hagenthal", "~parent_of").known[-1], more.waiting
        ('Ada', 0)
        """
        edits = {**self._edits, **_edits(facts, remove, reject)}
        return Model(self._learnt, edits)

    def update(
        self,
        facts: Iterable[Sequence[Name]] | Any = (),
        *,
        remove: Iterable[Sequence[Name]] | Any = (),
        reject: Iterable[Sequence[Name]] | Any = (),
        minutes: float | None = None,
        out: PathName | None = None,
        device: str = "auto",
        threads: int | None = None,
        learn_all: bool = False,
        progress: Progress = True,
    ) -> Model:
        """Learns from what the run holds and from what is new, which is all that is needed: `facts`, and those that were
        `add`ed. Networks start from the run's weights and its rules are recounted; the run itself stays. `out` is beside it
        by default, with `-updated` added to the name.

        >>> new = [("Ada", "parent_of", "Ilse_Hagenthal")]
        >>> now = model.update(new, out=folder / "updated", progress=False)
        >>> now.results["update"]["facts_added"], "Ada" in now.graph.entities
        (1, True)
        """
        edits = {**self._edits, **_edits(facts, remove, reject)}
        if not edits:
            raise ValueError("update: expected facts that are added, removed or rejected, found none")
        place = None if out is None else os.fspath(out)
        with shown(progress) as bars:
            seed = self._model.seed
            return Model(
                _ruleguider.Model.update(
                    str(self.path), _lists(edits), minutes, place, seed, device, threads, learn_all, bars
                )
            )

    @property
    def waiting(self) -> int:
        """How many of the facts that were `add`ed no member can use yet: their relation, or an entity, was not learnt."""
        return self._waiting

    def rules(self, head: str | None = None, *, min_confidence: float = 0.0) -> Rules:
        """Its rules; only those for the relation `head`, if given."""
        rules = Rules(self._model.rules())
        return rules.select(head, min_confidence) if head is not None or min_confidence > 0 else rules

    def entity_embeddings(self) -> NDArray[numpy.float32]:
        """The vectors of entities, in the order of `graph.entities`: read-only, and the model's own memory if it is on the
        CPU. Vectors of complex numbers have the real parts first."""
        return _array(self._model.entity_embeddings())

    def entity_biases(self) -> NDArray[numpy.float32] | None:
        """The biases of entities, in the order of `graph.entities`; `None` if the embedding model has none."""
        view = self._model.entity_biases()
        return None if view is None else _array(view)[:, 0]

    @property
    def embedding(self) -> dict[str, Any] | None:
        """The settings of the embedding model (`model`, `dimension`, `loss` and the others), and `log_odds`: `scale` and
        `shift` from its scores to log-odds. `None` without one.

        >>> model.embedding is None
        True
        """
        return json.loads(self._model.embedding())

    def relation_embeddings(self, *, inverse: bool = False) -> NDArray[numpy.float32]:
        """The vectors of relations, in the order of `graph.relations`; with `inverse`, those of their inverses."""
        return _array(self._model.relation_embeddings(inverse))

    @property
    def graph(self) -> Graph:
        """The graph it was learnt from."""
        return Graph._wrap(self._model.graph)

    @property
    def path(self) -> Path:
        """The run directory."""
        return Path(self._model.path)

    @property
    def results(self) -> dict[str, Any]:
        """The results of the run: figures on the test split, stages with their seconds, examples."""
        return json.loads(self._model.results)

    @property
    def config(self) -> dict[str, Any]:
        """Its settings, with the keys of the TOML."""
        return json.loads(self._model.config)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Its learning curves: one point per training epoch."""
        return json.loads(self._model.metrics)

    @property
    def device(self) -> str:
        """The device of its tensors."""
        return self._model.device

    def __reduce__(self) -> tuple[Any, ...]:
        """A model is pickled as the path of its run, which has to be there where it is opened again, and the facts that
        were added."""
        return _opened, (str(self.path), self._edits)

    def __eq__(self, other: object) -> bool:
        """Models of the same run are equal, if the same facts were added."""
        same = isinstance(other, Model) and other.path.resolve() == self.path.resolve()
        return same and isinstance(other, Model) and other._edits == self._edits

    def __hash__(self) -> int:
        return hash(self.path.resolve())

    def __repr__(self) -> str:
        results = self.results
        edits = f", {len(self._edits):,} edits" if self._edits else ""
        return f"Model({self.path}: {results['dataset']}, {results['system']}, mrr={results['mrr']:.4f}{edits})"


def _opened(path: str, edits: Edits) -> Model:
    return Model(open(path)._learnt, edits)


def _edits(facts: Any, remove: Any, reject: Any) -> Edits:
    """What becomes of each fact; of one that is given twice, the last."""
    edits: Edits = {}
    for (head, relation, tail), confidence, source in noted_facts(facts):
        edits[head, relation, tail] = ("added", confidence, source)
    for what, given in (("removed", remove), ("rejected", reject)):
        for head, relation, tail in given_facts(given):
            edits[head, relation, tail] = (what, None, None)
    return edits


def _lists(edits: Edits) -> _ruleguider._Edits:
    """The facts that are added, removed and rejected."""
    added = [(list(fact), confidence, source) for fact, (what, confidence, source) in edits.items() if what == "added"]
    removed, rejected = (
        [list(fact) for fact, (what, _, _) in edits.items() if what == wanted] for wanted in ("removed", "rejected")
    )
    return added, removed, rejected


def _at_least_one(top: int) -> int:
    if isinstance(top, bool) or not hasattr(top, "__index__"):
        raise ValueError(f"top: expected a whole number, found {top!r}")
    if top < 1:
        raise ValueError(f"top: expected at least 1, found {top}")
    return top


def _array(view: _ruleguider.View) -> NDArray[Any]:
    import numpy

    return numpy.asarray(view)
