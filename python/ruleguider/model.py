"""`learn`, `open`, and the `Model` they give."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _ruleguider
from ._inputs import pairs, plain
from ._progress import shown
from .graph import SPLIT, Data, Graph
from .results import Completed, Evaluation, Explanation, Facts, Prediction, Predictions
from .rules import Rules

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Name = str | int
PathName = str | os.PathLike[str]


def learn(
    data: Data | None = None,
    *,
    minutes: float | None = None,
    out: PathName | None = None,
    seed: int = 1,
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    device: str = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    split: Sequence[float] | None = SPLIT,
    header: bool | None = None,
    update: PathName | None = None,
    learn_all: bool = False,
    progress: bool = True,
) -> Model:
    """Learns from `data` (a `Graph`, or anything that makes one; by default the demonstration graph) and ranks its test
    split.

    It takes `minutes` (10 by default); if `config` names a configuration, there is no time limit by default. `config` is the
    name of a configuration, a TOML file, or a dict with the keys of the TOML, nested or dotted; the key `base` names a
    configuration to start from. `out` is the run directory (by default `runs/` and the name of the data); an existing run
    is resumed. Ctrl-C keeps a checkpoint and raises `KeyboardInterrupt`; the same call resumes from there.

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
    """
    if update is not None and data is None:
        raise ValueError("update: expected `data` too, the new version of the run's data")
    if data is None:
        graph = Graph.demonstration()
    else:
        # An update divides the new facts itself.
        graph = Graph.of(data, split=split if update is None else None, seed=seed, header=header)
    named = settings = None
    if isinstance(config, Mapping):
        settings = json.dumps(config, default=plain)
    elif config is not None:
        named = os.fspath(config)
    with shown(progress) as bars:
        model = _ruleguider.Model.learn(
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
            bars,
        )
    return Model(model)


def open(
    path: PathName,
    *,
    data: PathName | None = None,
    device: str = "auto",
    threads: int | None = None,
    beam: int | None = None,
) -> Model:
    """Opens the run at `path`. `data` is the path of its data, if that has moved; `beam` is the walker's beam width.

    >>> rg.open(model.path).path == model.path
    True
    """
    moved = None if data is None else os.fspath(data)
    return Model(_ruleguider.Model.open(os.fspath(path), moved, device, threads, beam))


class Model:
    """A trained model, ready to answer. It can be used from many threads at once."""

    __slots__ = ("_model",)

    def __init__(self, model: _ruleguider.Model) -> None:
        self._model = model

    def predict(self, subject: Name, relation: Name, *, top: int = 10) -> Prediction:
        """The `top` best answers to (subject, relation, ?) that the graph does not have, each with its reason. Entities
        and relations by name or label; `~relation` asks for heads.

        >>> p = model.predict("Ilse_Hagenthal", "~parent_of", top=2)
        >>> p.inverse, len(p) <= 2
        (True, True)
        """
        return Prediction(json.loads(self._model.predict(str(subject), str(relation), _at_least_one(top))))

    def predict_many(
        self, queries: Iterable[tuple[Name, Name]] | Any, *, top: int = 10, progress: bool = True
    ) -> Predictions:
        """The answers to many queries: pairs of subject and relation, or a frame or an array with two columns.

        >>> many = model.predict_many([("Ilse_Hagenthal", "cousin_of"), ("Ilse_Hagenthal", "sibling_of")], progress=False)
        >>> sorted(many.to_polars()["query"].unique().to_list())
        [0, 1]
        """
        with shown(progress) as bars:
            return Predictions(self._model.predict_many(pairs(queries), _at_least_one(top), bars))

    def explain(self, subject: Name, relation: Name, object: Name) -> Explanation:
        """Why `object` is, or is not, an answer to (subject, relation, ?).

        >>> first = model.predict("Ilse_Hagenthal", "cousin_of")[0]
        >>> model.explain("Ilse_Hagenthal", "cousin_of", first.entity).rank
        1
        """
        return Explanation(json.loads(self._model.explain(str(subject), str(relation), str(object))))

    @overload
    def complete(
        self,
        relation: str | Sequence[str] | None = None,
        *,
        top: int | None = None,
        min_probability: float | None = None,
        out: None = None,
        progress: bool = True,
    ) -> Facts: ...
    @overload
    def complete(
        self,
        relation: str | Sequence[str] | None = None,
        *,
        top: int | None = None,
        min_probability: float | None = None,
        out: PathName,
        progress: bool = True,
    ) -> Completed: ...
    def complete(
        self,
        relation: str | Sequence[str] | None = None,
        *,
        top: int | None = None,
        min_probability: float | None = None,
        out: PathName | None = None,
        progress: bool = True,
    ) -> Facts | Completed:
        """The missing facts of a relation, of several, or of all, best first. Without `top`, those with a probability of
        at least 0.1. With `out` they are written there as by `ruleguider complete`: in the format given by the file
        extension, in bounded memory, resumed if interrupted.

        >>> facts = model.complete("cousin_of", top=5, progress=False)
        >>> len(facts), facts[0].relation
        (5, 'cousin_of')
        """
        relations = [relation] if isinstance(relation, str) else list(relation or [])
        most = None if top is None else _at_least_one(top)
        file = None if out is None else os.fspath(out)
        with shown(progress) as bars:
            said = json.loads(self._model.complete(relations, most, min_probability, file, bars))
        return Facts(said) if out is None else Completed(said)

    def evaluate(
        self,
        split: Literal["test", "valid"] = "test",
        *,
        direction: str = "tail",
        ties: str = "realistic",
        leave_out_unseen: bool = False,
        all_queries: bool = False,
        progress: bool = True,
    ) -> Evaluation:
        """Ranks the true answers of a split, filtered. `direction` is `tail`, `head` or `both`.

        A split that would need more than 10**11 scores is represented by an even sample, unless `all_queries` is true.

        >>> model.evaluate(direction="both", progress=False).mrr > 0.5
        True
        """
        with shown(progress) as bars:
            said = self._model.evaluate(split, direction, ties, leave_out_unseen, all_queries, bars)
            return Evaluation(json.loads(said))

    def rules(self, head: str | None = None, *, min_confidence: float = 0.0) -> Rules:
        """Its rules; only those for the relation `head`, if given."""
        rules = Rules(self._model.rules())
        return rules.select(head, min_confidence) if head is not None or min_confidence > 0 else rules

    def entity_embeddings(self) -> NDArray[numpy.float32]:
        """The vectors of entities, in the order of `graph.entities`: read-only, and the model's own memory if it is on the
        CPU. Vectors of complex numbers have the real parts first."""
        return _array(self._model.entity_embeddings())

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

    def __repr__(self) -> str:
        results = self.results
        return f"Model({self.path}: {results['dataset']}, {results['system']}, mrr={results['mrr']:.4f})"


def _at_least_one(top: int) -> int:
    if top < 1:
        raise ValueError(f"top: expected at least 1, found {top}")
    return top


def _array(view: _ruleguider.View) -> NDArray[Any]:
    import numpy

    return numpy.asarray(view)
