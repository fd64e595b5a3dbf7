//! The parts of a mining job as files, and how they are merged into a rule file.
//!
//! A row is either a rule as it will stand in the rule file, with the ids by which rules are ordered, or the counts
//! of a body that several parts share. Merging holds one row of each part at a time, in the order of rule files, or all of
//! them if they are few; the data is not needed.
//!
//! ```text
//!                       part 1         part 2         part 3
//!                    ┌ rule  .9       rule  .8       rule  .7      each part in the order of rule files
//!                    │ rule  .4       rule  .3       rule  .2
//!                    └ counts of p    counts of p                  a prefix p too large for one part
//! first look    Σ counts of p ──▶ rule .6 …                        now it can be scored
//!               what each longer rule adds ──▶ the least that is kept
//! second look   merge by key: .9 .8 .7 .6 .4 .3 .2 ──▶ rule file, without what is not kept
//! ```
//!
//! Two looks are needed because a rule of a shared body may come first in the file, but is known only when the last part
//! has been read; likewise which of the longer rules are among the best of their group.

use super::clause::{Counts, Rule, RuleType, ScoredRule, Shape, sort_by_confidence};
use super::count::{Part, Worth};
use super::file::rule_line;
use super::mine::{Keep, MineOptions, MinedShard, PartialTally, Sum, adds};
use super::{Map, RuleError, rule_text};
use ruleguider_graph::shard::{Header, Merge, Part as PartFile, Parts, ShardError, write_part};
use ruleguider_graph::{EntityId, Link, Names, Vocabulary, write_packed};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};

/// What the parts of a mining job depend on besides data and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleShardSettings {
    /// What is mined, and how.
    pub options: MineOptions,
    /// The names of the relations, for writing bodies that several parts share.
    pub relations: Vec<String>,
}

/// The rules in a merged file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleCounts {
    /// Cyclic rules.
    pub cyclic: usize,
    /// Acyclic rules: paths to a constant or an unbound variable.
    pub acyclic: usize,
    /// Zero rules: constants without a body.
    pub zero: usize,
}

impl RuleCounts {
    fn add(&mut self, of: RuleType) {
        match of {
            RuleType::Cyclic => self.cyclic += 1,
            RuleType::Acyclic => self.acyclic += 1,
            RuleType::Zero => self.zero += 1,
        }
    }

    /// The number of all rules.
    pub fn all(&self) -> usize {
        self.cyclic + self.acyclic + self.zero
    }
}

/// A row of a part. A reader that has no use for one of the two ignores it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Row<R = RuleRow, P = PartialTally> {
    Rule(R),
    Partial(P),
}

/// A rule by its ids, with its counts and its text.
#[derive(Clone, Serialize, Deserialize)]
struct RuleRow {
    head: u32,
    body: Vec<u32>,
    /// The constants at the ends of head and body, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constants: Option<(u32, Option<u32>)>,
    predicted: u64,
    correct: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sampled: bool,
    rule: String,
}

impl RuleRow {
    fn new(scored: &ScoredRule, names: &Names) -> Self {
        let ScoredRule { rule, counts: Counts { predicted, correct, sampled } } = scored;
        let constants = match rule.shape {
            Shape::Cyclic => None,
            Shape::Constant { answer, end } => Some((answer.0, end.map(|end| end.0))),
        };
        let body = rule.body.iter().map(|link| link.0).collect();
        let (head, rule) = (rule.head.0, rule_text(rule, names));
        Self { head, body, constants, predicted: *predicted, correct: *correct, sampled: *sampled, rule }
    }

    fn rule(&self) -> Rule {
        let shape = match self.constants {
            None => Shape::Cyclic,
            Some((answer, end)) => Shape::Constant { answer: EntityId(answer), end: end.map(EntityId) },
        };
        Rule { head: Link(self.head), body: self.body.iter().map(|&link| Link(link)).collect(), shape }
    }

    fn counts(&self) -> Counts {
        Counts { predicted: self.predicted, correct: self.correct, sampled: self.sampled }
    }

    /// Smaller keys come first in a rule file. Positive floats are ordered like their bits.
    fn key(&self, unseen: f64) -> (Reverse<u64>, Reverse<u64>, Rule) {
        (Reverse(self.counts().confidence(unseen).to_bits()), Reverse(self.correct), self.rule())
    }
}

/// Writes the result of one part. Returns the number of rows.
///
/// # Errors
/// If the file cannot be written.
pub fn write_rule_shard(
    path: &Path,
    header: &Header,
    mined: &MinedShard,
    names: &Names,
) -> Result<u64, RuleError> {
    let rows = write_part(path, header, |out| {
        let rule = |scored| Row::<_, PartialTally>::Rule(RuleRow::new(scored, names));
        mined.mined.rules.iter().try_for_each(|scored| out.row(&rule(scored)))?;
        mined.partial.iter().try_for_each(|partial| out.row(&Row::<RuleRow, _>::Partial(partial)))
    });
    Ok(rows?)
}

/// Merges `parts` into the rule file `out`: byte for byte what one process would have written.
///
/// # Errors
/// If a part is damaged, or a file cannot be read or written.
pub fn merge_rule_shards(parts: Parts, out: &Path) -> Result<RuleCounts, RuleError> {
    let settings: RuleShardSettings = parts.header().settings(parts.path())?;
    let parts = parts.into_parts();
    let paths: Vec<PathBuf> = parts.iter().map(|part| part.path().to_owned()).collect();
    let options = &settings.options;
    let FirstLook { shared, mut kept, held } = first_look(parts, &settings)?;
    let mut sources: Vec<RuleRows> = match held.parts {
        Some(parts) => parts.into_iter().map(in_memory).collect(),
        None => paths.iter().map(|path| in_file(path)).collect::<Result<_, _>>()?,
    };
    sources.push(in_memory(shared));
    let mut counts = RuleCounts::default();
    let failed = RefCell::new(None);
    let written = write_packed(out, |file| {
        let mut line = String::new();
        for row in Merge::new(sources, |row: &RuleRow| row.key(options.unseen)) {
            let row = row.map_err(|error| {
                let message = error.to_string();
                failed.replace(Some(error));
                io::Error::other(message)
            })?;
            let rule = row.rule();
            if is_long(&rule) && !kept.keeps(&rule, &row.counts(), options) {
                continue;
            }
            counts.add(rule.rule_type());
            line.clear();
            rule_line(&row.counts(), &row.rule, &mut line);
            line.push('\n');
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    });
    match (failed.into_inner(), written) {
        (Some(error), _) => Err(error.into()),
        (None, Err(source)) => Err(RuleError::Unwritable { path: out.to_owned(), source }),
        (None, Ok(())) => Ok(counts),
    }
}

/// Rules in the order of rule files.
type RuleRows = Box<dyn Iterator<Item = Result<RuleRow, ShardError>>>;

fn in_memory(rows: Vec<RuleRow>) -> RuleRows {
    Box::new(rows.into_iter().map(Ok))
}

fn in_file(path: &Path) -> Result<RuleRows, ShardError> {
    let rows = PartFile::open(path)?.rows::<Row<RuleRow, IgnoredAny>>();
    Ok(Box::new(rows.filter_map(|row| match row {
        Ok(Row::Rule(row)) => Some(Ok(row)),
        Ok(Row::Partial(_)) => None,
        Err(error) => Some(Err(error)),
    })))
}

/// Whether a rule has constants and a longer body; only the best of these are kept.
fn is_long(rule: &Rule) -> bool {
    rule.rule_type() == RuleType::Acyclic && rule.body.len() > 1
}

/// The group of a rule with constants: a link, and the constant if it has one.
type About = (Link, Option<EntityId>);

/// Which rules with constants and longer bodies are kept: a limited number for every link and constant.
struct Kept {
    counts: Map<About, usize>,
    /// Unless it is [`Keep::Confident`] or there are no such rules: the smallest gain that is kept, and how many rules
    /// with exactly that gain are kept.
    least: Option<Map<About, (f64, usize)>>,
}

impl Kept {
    /// Whether a rule is kept; must be called in the order of rule files.
    fn keeps(&mut self, rule: &Rule, counts: &Counts, options: &MineOptions) -> bool {
        let group = (rule.head, rule.shape.constant());
        let Some(least) = &mut self.least else {
            let count = self.counts.entry(group).or_default();
            *count += 1;
            return *count <= options.max_bodies;
        };
        // Groups that have no more rules than wanted have no least gain.
        let Some((least, as_much)) = least.get_mut(&group) else { return true };
        match adds(counts, options).total_cmp(least) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            // Among equals, those that come first in the file are kept, whichever part they are from.
            std::cmp::Ordering::Equal => {
                let kept = *as_much > 0;
                *as_much = as_much.saturating_sub(1);
                kept
            }
        }
    }
}

/// Up to this many rules stay in memory between the two looks at all parts, some ten megabytes. Small parts are read
/// once then. In tests, some are not small.
const HELD: usize = if cfg!(test) { 1500 } else { 1 << 16 };

/// The rules of each part, unless there are too many.
struct Held {
    parts: Option<Vec<Vec<RuleRow>>>,
    rules: usize,
}

impl Held {
    /// The rules that follow are of another part.
    fn next_part(&mut self) {
        if let Some(parts) = &mut self.parts {
            parts.push(Vec::new());
        }
    }

    fn hold(&mut self, row: RuleRow) {
        self.rules += 1;
        if self.rules > HELD {
            self.parts = None;
        }
        if let Some(part) = self.parts.as_mut().and_then(|parts| parts.last_mut()) {
            part.push(row);
        }
    }
}

/// What has to be known of all parts before the first rule can be written.
struct FirstLook {
    /// The rules of bodies that several parts share, in the order of rule files.
    shared: Vec<RuleRow>,
    /// Which longer rules are kept.
    kept: Kept,
    held: Held,
}

fn first_look(parts: Vec<PartFile>, settings: &RuleShardSettings) -> Result<FirstLook, RuleError> {
    let options = &settings.options;
    let mut sums = Sums::default();
    let mut held = Held { parts: Some(Vec::new()), rules: 0 };
    let limited = options.keep != Keep::Confident && options.types.contains(&RuleType::Acyclic);
    let mut added: Option<Map<About, Vec<f64>>> = limited.then(Map::default);
    for part in parts {
        held.next_part();
        let path = part.path().to_owned();
        let add = |partial| add_up(&mut sums, partial, settings, &path);
        if held.parts.is_none() && added.is_none() {
            // Rules that nobody looks at yet need not be parsed.
            each_row(part, |_: IgnoredAny| (), add)?;
            continue;
        }
        let note = |row: RuleRow| {
            if let Some(added) = &mut added {
                note_added(added, &row, options);
            }
            held.hold(row);
        };
        each_row(part, note, add)?;
    }
    let least = added.map(|added| least_added(added, options.max_bodies));
    let kept = Kept { counts: Map::default(), least };
    Ok(FirstLook { shared: rules_of(sums, settings), kept, held })
}

/// Notes what a longer rule adds to the others of its group.
fn note_added(added: &mut Map<About, Vec<f64>>, row: &RuleRow, options: &MineOptions) {
    let rule = row.rule();
    if is_long(&rule) {
        let group = added.entry((rule.head, rule.shape.constant())).or_default();
        group.push(adds(&row.counts(), options));
    }
}

/// Passes every row of `part` on.
fn each_row<R: DeserializeOwned>(
    part: PartFile,
    mut rule: impl FnMut(R),
    mut partial: impl FnMut(PartialTally) -> Result<(), ShardError>,
) -> Result<(), RuleError> {
    for row in part.rows::<Row<R>>() {
        match row? {
            Row::Rule(row) => rule(row),
            Row::Partial(tally) => partial(tally)?,
        }
    }
    Ok(())
}

/// By prefix, the share of its sources that is sampled, and the sum of its parts.
type Sums = Map<Vec<u32>, (f64, Sum)>;

/// Adds a row of the part at `path`.
fn add_up(
    sums: &mut Sums,
    tally: PartialTally,
    settings: &RuleShardSettings,
    path: &Path,
) -> Result<(), ShardError> {
    let links = Link::RESERVED as u32..Link::count(settings.relations.len()) as u32;
    if let Some(link) = tally.links().find(|link| !links.contains(link)) {
        let what = format!("counts a body with link {link}, which is of no relation that it lists");
        return Err(ShardError::Damaged { path: path.to_owned(), what });
    }
    let PartialTally { prefix, share, bodies } = tally;
    let (_, sum) = sums.entry(prefix).or_insert_with(|| (share, Sum::default()));
    sum.add(bodies);
    Ok(())
}

/// The rules of bodies that several parts share.
fn rules_of(sums: Sums, settings: &RuleShardSettings) -> Vec<RuleRow> {
    let RuleShardSettings { options, relations } = settings;
    let vocabulary: Vocabulary = relations.iter().map(String::as_str).collect();
    let names = Names { relations: vocabulary, ..Names::default() };
    let worth: Worth = options.worth(Link::count(relations.len()));
    let mut rules = Vec::new();
    for (prefix, (share, sum)) in sums {
        let prefix: Vec<Link> = prefix.into_iter().map(Link).collect();
        let part = Part { share, ..Part::WHOLE };
        sum.tallies().for_each(|tally| worth.rules(&prefix, &tally, part, &mut rules));
    }
    sort_by_confidence(&mut rules, options.unseen);
    rules.iter().map(|scored| RuleRow::new(scored, &names)).collect()
}

/// For every group, the smallest gain that is kept, and how many rules with exactly that gain are kept.
fn least_added(added: Map<About, Vec<f64>>, most: usize) -> Map<About, (f64, usize)> {
    let full = added.into_iter().filter(|(_, adds)| adds.len() > most);
    full.map(|(group, mut adds)| {
        adds.sort_by(|a, b| b.total_cmp(a));
        // If none are kept, there is no last one; any index will do here.
        let least = adds[most.saturating_sub(1)];
        let before = adds[..most].iter().filter(|&&add| add == least).count();
        (group, (if most == 0 { f64::INFINITY } else { least }, before))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartialBody;
    use crate::{MiningBudget, mine, mine_shard, write_rules};
    use ruleguider_graph::shard::{Shard, ShardKind};
    use ruleguider_graph::{Dataset, Graph};
    use ruleguider_support::progress::Silent;
    use std::sync::Arc;

    fn options(budget: MiningBudget, keep: Keep) -> MineOptions {
        MineOptions {
            types: vec![RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero],
            max_acyclic_length: 2,
            max_bodies: 3,
            budget,
            keep,
            ..MineOptions::default()
        }
    }

    fn header(dataset: &Dataset, options: &MineOptions, shard: Shard) -> Header {
        let relations = dataset.names.relations.iter().map(str::to_owned).collect();
        let settings = RuleShardSettings { options: options.clone(), relations };
        Header::new(ShardKind::Rules, shard, options.seed, "sum".to_owned(), &settings)
    }

    /// The files of `count` parts in `folder`, and how many of their rows are counts of shared bodies.
    fn parts(
        folder: &Path,
        dataset: &Dataset,
        graph: &Arc<Graph>,
        options: &MineOptions,
        count: u64,
    ) -> (Vec<PathBuf>, usize) {
        let mut shared = 0;
        let paths = (1..=count).rev().map(|index| {
            let shard = Shard::new(index, count).unwrap();
            let mined = mine_shard(graph, options, shard, &Silent).unwrap();
            assert_eq!(mined.mined.saturation, 1.0, "{shard}");
            shared += mined.partial.len();
            let path = folder.join(format!("{index}-{count}.shard.zst"));
            write_rule_shard(&path, &header(dataset, options, shard), &mined, &dataset.names).unwrap();
            path
        });
        (paths.collect(), shared)
    }

    #[test]
    fn parts_make_the_file_that_one_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = ruleguider_graph::generate::demonstration();
        let graph = dataset.graph();
        let file = |name: &str| folder.path().join(name);
        let mut cut = 0;
        for (budget, keep, distinct, max_groundings, counts) in [
            (MiningBudget::Samples(3000), Keep::Confident, true, u64::MAX, &[1, 2, 3, 7, 16][..]),
            (MiningBudget::Samples(3000), Keep::Adding, false, 5000, &[2, 7]),
            (MiningBudget::Saturation, Keep::Both, true, u64::MAX, &[3, 16]),
        ] {
            let options = MineOptions { distinct, max_groundings, ..options(budget, keep) };
            // Saturation with constants and longer bodies takes long.
            let options = match budget {
                MiningBudget::Saturation => MineOptions { max_acyclic_length: 1, ..options },
                _ => options,
            };
            let whole = mine(&graph, &options, &Silent).unwrap();
            assert!(whole.rules.len() > 1000);
            write_rules(&file("whole.tsv"), &whole.rules, &dataset.names).unwrap();
            let expected = std::fs::read(file("whole.tsv")).unwrap();
            for &count in counts {
                let (paths, shared) = parts(folder.path(), &dataset, &graph, &options, count);
                assert!(shared == 0 || count > 1, "one part has nobody to share with");
                cut += usize::from(shared > 0);
                let merged = merge_rule_shards(Parts::open(&paths).unwrap(), &file("merged.tsv")).unwrap();
                assert_eq!(std::fs::read(file("merged.tsv")).unwrap(), expected, "{budget:?} {count}");
                assert_eq!(merged.all(), whole.rules.len());
                assert_eq!(merged.cyclic, whole.by_type(RuleType::Cyclic));
            }
        }
        assert!(cut > 0, "prefixes are cut where there are several parts");
    }

    #[test]
    fn what_is_too_much_for_one_part_is_too_much_for_all() {
        let dataset = ruleguider_graph::generate::demonstration();
        let relations: Vec<String> = dataset.names.relations.iter().map(str::to_owned).collect();
        let options = options(MiningBudget::Saturation, Keep::Confident);
        let settings = RuleShardSettings { options: options.clone(), relations };
        let folder = tempfile::tempdir().unwrap();
        let counted = |first: u32| PartialTally {
            prefix: vec![first, 5],
            share: 1.0,
            bodies: Some(vec![PartialBody(7, 10, vec![(3, 6)])]),
        };
        let given_up = PartialTally { bodies: None, ..counted(5) };
        let rows = [vec![counted(3), counted(5)], vec![counted(3), given_up]];
        let paths: Vec<PathBuf> = (1..)
            .zip(&rows)
            .map(|(index, partial)| {
                let shard = Shard::new(index, 2).unwrap();
                let mined = MinedShard {
                    partial: partial.clone(),
                    mined: crate::Mined { rules: Vec::new(), saturation: 1.0, interrupted: false },
                };
                let path = folder.path().join(format!("{index}.shard"));
                let header = Header::new(ShardKind::Rules, shard, 1, String::new(), &settings);
                write_rule_shard(&path, &header, &mined, &dataset.names).unwrap();
                path
            })
            .collect();
        let parts = Parts::open(&paths).unwrap().into_parts();
        let FirstLook { shared, .. } = first_look(parts, &settings).unwrap();
        let found: Vec<(u64, u64)> = shared.iter().map(|row| (row.predicted, row.correct)).collect();
        assert_eq!(found, [(20, 12)], "the sum of the first body, and nothing of the second");
    }

    #[test]
    fn what_the_clock_decides_is_not_shared() {
        let graph = ruleguider_graph::generate::demonstration().graph();
        let options = options(MiningBudget::Seconds(1.0), Keep::Confident);
        let refused = mine_shard(&graph, &options, "1/2".parse().unwrap(), &Silent).unwrap_err();
        assert!(refused.to_string().contains("seconds"), "{refused}");
    }
}
