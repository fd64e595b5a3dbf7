//! The figures of an evaluation: over all queries, by relation, and for links that lead to one or to many.

use super::baseline::BaselineRanks;
use super::{Baselines, Evaluation, Protocol, Ranked, Side, Stratum, Ties, Totals, Truth};
use crate::graph::{Direction, Link, RelationId};
use crate::shown::Shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A link leads to many if its queries have more answers in the graph than this on average.
const MANY: f64 = 1.5;

/// The figures of a set of ranks. Fractions, not per cent; all zero over no queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// How many queries were ranked.
    pub queries: usize,
    /// The share of targets ranked first.
    #[serde(rename = "hits@1")]
    pub hits_at_1: f64,
    /// The share of targets with a rank of at most 3.
    #[serde(rename = "hits@3")]
    pub hits_at_3: f64,
    /// The share of targets with a rank of at most 5.
    #[serde(rename = "hits@5")]
    pub hits_at_5: f64,
    /// The share of targets with a rank of at most 10.
    #[serde(rename = "hits@10")]
    pub hits_at_10: f64,
    /// The mean of 1 / rank.
    pub mrr: f64,
    /// The mean rank.
    pub mean_rank: f64,
}

impl Figures {
    /// The figures of some ranks, each with its weight.
    pub fn weighed(ranks: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (mut sum, mut all) = (Figures::default(), 0.0);
        for (rank, weight) in ranks {
            let one = Figures::of([rank]);
            let add = |to: &mut f64, figure: f64| *to += weight * figure;
            sum.queries += 1;
            all += weight;
            add(&mut sum.hits_at_1, one.hits_at_1);
            add(&mut sum.hits_at_3, one.hits_at_3);
            add(&mut sum.hits_at_5, one.hits_at_5);
            add(&mut sum.hits_at_10, one.hits_at_10);
            add(&mut sum.mrr, one.mrr);
            add(&mut sum.mean_rank, one.mean_rank);
        }
        let figures = [&mut sum.hits_at_1, &mut sum.hits_at_3, &mut sum.hits_at_5, &mut sum.hits_at_10];
        figures.into_iter().chain([&mut sum.mrr, &mut sum.mean_rank]).for_each(|figure| {
            *figure = if all > 0.0 { *figure / all } else { 0.0 };
        });
        sum
    }

    /// The figures of some ranks.
    pub fn of(ranks: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = Figures::default();
        for rank in ranks {
            let hit = |k: f64| f64::from(u8::from(rank <= k));
            sum.queries += 1;
            sum.hits_at_1 += hit(1.0);
            sum.hits_at_3 += hit(3.0);
            sum.hits_at_5 += hit(5.0);
            sum.hits_at_10 += hit(10.0);
            sum.mrr += 1.0 / rank;
            sum.mean_rank += rank;
        }
        let mean = |total: f64| total / sum.queries.max(1) as f64;
        Figures {
            queries: sum.queries,
            hits_at_1: mean(sum.hits_at_1),
            hits_at_3: mean(sum.hits_at_3),
            hits_at_5: mean(sum.hits_at_5),
            hits_at_10: mean(sum.hits_at_10),
            mrr: mean(sum.mrr),
            mean_rank: mean(sum.mean_rank),
        }
    }
}

/// The figures of one relation, over all directions that were asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationFigures {
    /// The relation's name.
    pub relation: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The full result of an evaluation. As JSON its keys are a contract with scripts; as text it is a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Over all queries.
    #[serde(flatten)]
    pub figures: Figures,
    /// How many queries were left out because an entity is nowhere in the graph.
    pub left_out: usize,
    /// How many queries the split has, if only an even sample of it was ranked; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_from: Option<usize>,
    /// Which end of the triples was asked for.
    pub direction: Side,
    /// How ties were ranked.
    pub ties: Ties,
    /// How long asking and ranking took.
    pub seconds: f64,
    /// Queries for tails, if both ends were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tails: Option<Figures>,
    /// Queries for heads, if both ends were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<Figures>,
    /// Queries over links that lead to one: at most 1.5 answers per query on average over the graph.
    pub to_one: Figures,
    /// Queries over links that lead to many: more than 1.5 answers per query on average over the graph.
    pub to_many: Figures,
    /// By relation, most queries first.
    pub relations: Vec<RelationFigures>,
    /// The same queries without a model; absent in the figures of a baseline itself, and in those of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineFigures>,
    /// By [situation](super::Situation), if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strata: Option<Vec<Stratum>>,
}

/// The figures of the [baselines](Baselines) on the queries of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineFigures {
    /// By popularity: how many known facts of the relation have a candidate as an answer.
    pub popularity: Box<Report>,
    /// By the answers of the subjects that share most facts with the one asked about.
    pub similar: Box<Report>,
}

/// A rank, with the keys that the report groups it by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// The number of the query, from 0, in the order of the split.
    pub at: usize,
    /// The relation that was asked about.
    pub relation: RelationId,
    /// Whether the head was asked for.
    pub head: bool,
    /// Whether the link leads to many.
    pub to_many: bool,
    /// The rank.
    pub rank: f64,
    /// The rank by popularity.
    pub popularity: f64,
    /// The rank by the answers of similar subjects.
    pub similar: f64,
}

impl Report {
    /// The report of `rows`, which are in the order of their numbers; `name` names relations.
    pub fn of(
        rows: &[RankRow],
        protocol: Protocol,
        totals: Totals,
        name: impl Fn(RelationId) -> String,
    ) -> Self {
        let without = Totals { seconds: totals.baseline_seconds, ..totals };
        let baseline = |rank: fn(&RankRow) -> f64| Box::new(Self::by(rank, rows, protocol, without, &name));
        let [popularity, similar] = [baseline(|row| row.popularity), baseline(|row| row.similar)];
        let baseline = Some(BaselineFigures { popularity, similar });
        Self { baseline, ..Self::by(|row| row.rank, rows, protocol, totals, &name) }
    }

    /// The report of the ranks that `rank` takes from the rows.
    fn by(
        rank: fn(&RankRow) -> f64,
        rows: &[RankRow],
        protocol: Protocol,
        Totals { left_out, sampled_from, seconds, .. }: Totals,
        name: impl Fn(RelationId) -> String,
    ) -> Self {
        let those = |of: &dyn Fn(&RankRow) -> bool| Figures::of(rows.iter().filter(|row| of(row)).map(rank));
        let end = |head| (protocol.side == Side::Both).then(|| those(&|row| row.head == head));
        Self {
            figures: those(&|_| true),
            tails: end(false),
            heads: end(true),
            left_out,
            sampled_from,
            direction: protocol.side,
            ties: protocol.ties,
            seconds,
            to_one: those(&|row| !row.to_many),
            to_many: those(&|row| row.to_many),
            relations: by_relation(rows, rank, name),
            baseline: None,
            strata: None,
        }
    }
}

impl Evaluation {
    /// The mean of 1 / rank.
    pub fn mrr(&self) -> f64 {
        self.figures().mrr
    }

    /// The figures over all queries.
    pub fn figures(&self) -> Figures {
        Figures::of(self.ranks.iter().map(|ranked| ranked.rank).filter(|rank| !rank.is_nan()))
    }

    /// The queries that were ranked, with their ranks by the baselines.
    pub fn rows(&self, truth: Truth<'_>, baselines: &Baselines<'_>) -> Vec<RankRow> {
        let mut leads_to_many: BTreeMap<Link, bool> = BTreeMap::new();
        let beside = baselines.ranks(&self.ranks, truth, self.protocol.ties);
        let ranked = self.ranks.iter().zip(beside).enumerate();
        ranked
            .filter_map(|(at, (&Ranked { query, rank, .. }, beside))| {
                let BaselineRanks { popularity, similar } = beside?;
                let to_many = *leads_to_many.entry(query.link).or_insert_with(|| {
                    let pairs = truth.graph.pairs(query.link);
                    pairs.len() as f64 > MANY * pairs.sources.len() as f64
                });
                let relation = query.link.relation().expect("a query asks about a relation");
                let head = query.link.direction() == Direction::Inverse;
                Some(RankRow { at, relation, head, to_many, rank, popularity, similar })
            })
            .collect()
    }
}

fn by_relation(
    rows: &[RankRow],
    rank: fn(&RankRow) -> f64,
    name: impl Fn(RelationId) -> String,
) -> Vec<RelationFigures> {
    let mut groups: BTreeMap<RelationId, Vec<f64>> = BTreeMap::new();
    for row in rows {
        groups.entry(row.relation).or_default().push(rank(row));
    }
    let mut relations: Vec<RelationFigures> = groups
        .into_iter()
        .map(|(relation, ranks)| RelationFigures { relation: name(relation), figures: Figures::of(ranks) })
        .collect();
    relations.sort_by_key(|relation| std::cmp::Reverse(relation.figures.queries));
    relations
}

/// How many relations the table shows; the JSON has them all.
const SHOWN: usize = 12;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value: &dyn fmt::Debug| format!("{value:?}").to_lowercase();
        writeln!(
            f,
            "{} queries ({} left out), direction {}, ties {}, {:.1} s; per cent except the mean rank",
            self.figures.queries,
            self.left_out,
            word(&self.direction),
            word(&self.ties),
            self.seconds
        )?;
        if let Some(whole) = self.sampled_from {
            writeln!(f, "an even sample of {whole} queries; --all ranks every one")?;
        }
        let shown = &self.relations[..self.relations.len().min(SHOWN)];
        let names: Vec<String> = shown.iter().map(|relation| Shown(&relation.relation).to_string()).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(13, 44);
        writeln!(f, "{:width$}  queries   hits@1   hits@3   hits@5  hits@10      MRR  mean rank", "")?;
        write_row(f, width, "all", &self.figures)?;
        for (name, figures) in [("tails", &self.tails), ("heads", &self.heads)] {
            figures.iter().try_for_each(|figures| write_row(f, width, name, figures))?;
        }
        if let Some(BaselineFigures { popularity, similar }) = &self.baseline {
            write_row(f, width, "by popularity", &popularity.figures)?;
            write_row(f, width, "as similar", &similar.figures)?;
        }
        write_row(f, width, "to one", &self.to_one)?;
        write_row(f, width, "to many", &self.to_many)?;
        for (relation, name) in shown.iter().zip(&names) {
            write_row(f, width, &shortened(name, width), &relation.figures)?;
        }
        if self.relations.len() > SHOWN {
            writeln!(f, "… and {} more relations (the JSON has all)", self.relations.len() - SHOWN)?;
        }
        self.strata.iter().try_for_each(|strata| write_strata(f, strata))
    }
}

/// The table of the situations.
fn write_strata(f: &mut fmt::Formatter<'_>, strata: &[Stratum]) -> fmt::Result {
    let width = strata.iter().map(|one| one.value.chars().count() + 2).max().unwrap_or(0);
    for group in strata.chunk_by(|a, b| a.by == b.by) {
        writeln!(f, "\n{}", group[0].about())?;
        for Stratum { value, figures, .. } in group {
            write_row(f, width, &format!("  {value}"), figures)?;
        }
    }
    Ok(())
}

fn write_row(f: &mut fmt::Formatter<'_>, width: usize, name: &str, figures: &Figures) -> fmt::Result {
    write!(f, "{name:width$}  {:7}", figures.queries)?;
    let Figures { hits_at_1, hits_at_3, hits_at_5, hits_at_10, mrr, mean_rank, .. } = figures;
    for share in [hits_at_1, hits_at_3, hits_at_5, hits_at_10, mrr] {
        write!(f, "  {:7.2}", share * 100.0)?;
    }
    writeln!(f, "  {mean_rank:9.1}")
}

/// Keeps the end of a long name, which says more than its beginning (`/people/person/place_of_birth`).
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    std::iter::once('…').chain(name.chars().skip(length + 1 - width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Adjacency, Direction, EntityId, Graph, Names, Query, Triple};

    fn example() -> Report {
        let mut names = Names::default();
        for name in ["knows", "born_in"] {
            names.relations.intern(name);
        }
        let facts = [(0, 0, 1), (0, 0, 2), (0, 1, 3), (1, 1, 3)].map(|(h, r, t)| Triple::new(h, r, t));
        let graph = Graph::new(4, 2, &facts);
        let ranked = |triple: (u32, u32, u32), direction, rank| {
            let (query, target) = Query::of(Triple::new(triple.0, triple.1, triple.2), direction);
            Ranked { query, target, rank, tied: 0 }
        };
        let evaluation = Evaluation {
            ranks: vec![
                ranked((1, 0, 2), Direction::Forward, 1.0),
                ranked((1, 0, 2), Direction::Inverse, 2.5),
                ranked((2, 1, 3), Direction::Forward, 4.0),
                ranked((2, 1, 3), Direction::Inverse, 20.0),
                ranked((2, 0, 0), Direction::Forward, 5.0),
                ranked((2, 0, 0), Direction::Inverse, 10.0),
            ],
            protocol: Protocol { side: Side::Both, ..Protocol::default() },
            totals: Totals { left_out: 2, seconds: 0.25, ..Totals::default() },
        };
        let answers = Adjacency::new(4, &[&facts]);
        assert!(answers.contains(EntityId(0), Link::forward(RelationId(0)), EntityId(1)));
        let truth = Truth { graph: &graph, answers: &answers };
        let rows = evaluation.rows(truth, &Baselines::new(&graph, &facts));
        let name = |relation| names.relation(relation).to_owned();
        Report::of(&rows, evaluation.protocol, evaluation.totals, name)
    }

    #[test]
    fn figures_are_means_over_the_queries() {
        let figures = Figures::of([1.0, 2.5, 4.0, 20.0]);
        assert_eq!(figures.queries, 4);
        assert_eq!((figures.hits_at_1, figures.hits_at_3), (0.25, 0.5));
        assert_eq!((figures.hits_at_5, figures.hits_at_10), (0.75, 0.75));
        assert!((figures.mrr - (1.0 + 0.4 + 0.25 + 0.05) / 4.0).abs() < 1e-12);
        assert_eq!(figures.mean_rank, 27.5 / 4.0);
        assert_eq!(Figures::of([]), Figures::default());
        let weighed = Figures::weighed([(1.0, 0.5), (4.0, 1.0), (20.0, 0.5)]);
        assert_eq!((weighed.hits_at_1, weighed.hits_at_5, weighed.mean_rank), (0.25, 0.75, 7.25));
        assert_eq!(Figures::weighed([(2.0, 0.3), (4.0, 0.3)]), Figures::of([2.0, 4.0]));
        assert_eq!(Figures::weighed([]), Figures::default());
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        let report = example();
        // `knows` leads from 0 to two, `born_in⁻¹` from 3 to two; the other two links lead to one.
        assert_eq!((report.to_one.queries, report.to_many.queries), (3, 3));
        assert_eq!(report.to_many.mean_rank, (1.0 + 20.0 + 5.0) / 3.0);
        assert_eq!(report.relations.iter().map(|r| r.figures.queries).sum::<usize>(), report.figures.queries);
    }

    #[test]
    fn the_ends_and_the_baselines_stand_beside_the_whole() {
        let report = example();
        let (tails, heads) = (report.tails.unwrap(), report.heads.unwrap());
        assert_eq!((tails.queries, heads.queries), (3, 3));
        assert_eq!((tails.mean_rank, heads.mean_rank), (10.0 / 3.0, 32.5 / 3.0));
        let BaselineFigures { popularity, similar } = report.baseline.unwrap();
        assert_eq!((popularity.figures.queries, similar.figures.queries), (6, 6));
        // `knows` has 1 and 2 as answers once each, and 2 is asked for first: it shares its place with 1.
        assert!(popularity.figures.mrr > 0.0 && popularity.baseline.is_none());
        assert_eq!(popularity.relations.len(), report.relations.len());
    }

    #[test]
    fn the_json_has_the_keys_that_scripts_read() {
        let json = serde_json::to_value(example()).unwrap();
        let keys = [
            "queries",
            "left_out",
            "hits@1",
            "hits@3",
            "hits@5",
            "hits@10",
            "mrr",
            "mean_rank",
            "direction",
            "ties",
            "seconds",
        ];
        for key in keys {
            assert!(json.get(key).is_some(), "{key} is missing in {json}");
        }
        assert_eq!((json["direction"].as_str(), json["ties"].as_str()), (Some("both"), Some("realistic")));
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), example());
    }

    #[test]
    fn the_table_is_for_people() {
        insta::assert_snapshot!(example().to_string(), @r"
        6 queries (2 left out), direction both, ties realistic, 0.2 s; per cent except the mean rank
                       queries   hits@1   hits@3   hits@5  hits@10      MRR  mean rank
        all                  6    16.67    33.33    66.67    83.33    33.33        7.1
        tails                3    33.33    33.33   100.00   100.00    48.33        3.3
        heads                3     0.00    33.33    33.33    66.67    18.33       10.8
        by popularity        6    16.67    83.33   100.00   100.00    57.54        2.1
        as similar           6    16.67   100.00   100.00   100.00    59.44        1.9
        to one               3     0.00    33.33    66.67   100.00    25.00        5.5
        to many              3    33.33    33.33    66.67    66.67    41.67        8.7
        knows                4    25.00    50.00    75.00   100.00    42.50        4.6
        born_in              2     0.00     0.00    50.00    50.00    15.00       12.0
        ");
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(shortened("/people/person/born", 8), "…on/born");
        assert_eq!(shortened("née", 3), "née");
    }
}
