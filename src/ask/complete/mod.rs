//! The missing facts of a graph, best first over all subjects: [`Model::complete`].
//!
//! For each link, every entity for which the link makes sense is queried. Queries are answered in blocks, and the
//! blocks are merged. A finished block is on disk before the next begins, so an interrupted call resumes there, and no
//! more than a block is in memory. The order, and the file to the last byte, do not depend on threads or interruptions.

mod blocks;
mod kept;
mod memory;
mod row;
#[cfg(test)]
mod tests;

pub(super) use blocks::Blocks;
pub(super) use kept::{Counted, Kept};
pub use kept::{HeldOutFacts, Recovered};
pub use memory::MissingFacts;
pub use row::MissingFact;
pub(super) use row::RankedFact;

use super::many::by_workers;
use super::predict::CANDIDATES;
use super::{Answer, AnswersAmong, AskError, Model};
use crate::aside::claim_file;
use crate::eval::calibration::TOP;
use crate::graph::{
    Dataset, Direction, EntityId, Link, Names, PredictedFact, Query, RdfStyle, RelationId, Triple,
    check_predicted, check_writable, is_annotated, sensible_queries, write_annotated, write_packed,
    write_predicted,
};
use crate::progress::{Progress, Silent};
use crate::reason::{Detail, Found, PathLimits, ScoreBounds};
use crate::run::{Checksum, RunError};
use crate::shard::{Header, Shard, write_part};
use rayon::prelude::*;
use row::Rank;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// About how many queries make a block.
const BLOCK: usize = 4096;
/// The most queries that are answered at once.
const BATCH: usize = 1024;

/// Two probabilities that differ by less may be equal.
const ROUNDING: f64 = 1e-9;

/// From this many on, it is said that the best facts are equally probable: whoever looks at the first sees no difference.
const TIES_SAID: u64 = 10;

/// The default minimum probability of a fact.
const MIN_PROBABILITY: f64 = 0.1;

/// How the work is cut: whole batches make a block, so that the last digits of a score do not depend on shards.
#[derive(Clone, Copy, Serialize)]
struct Cut {
    /// Queries that are answered at once.
    batch: usize,
    /// Queries of a block.
    block: usize,
}

/// A part of the completion.
#[derive(Clone, Copy)]
struct Work<'a> {
    options: &'a CompleteOptions,
    cut: Cut,
    shard: Shard,
}

/// Which missing facts to write.
#[derive(Clone, Debug)]
pub struct CompleteOptions {
    /// For which links; all relations, asked for their tails, if there are none.
    pub links: Vec<Link>,
    /// Only this many of the best; all by default.
    pub top: Option<usize>,
    /// Only facts with at least this probability.
    pub min_probability: Option<f64>,
    /// What happens to facts that the data has and that were held out.
    pub held_out: HeldOutFacts,
    /// Which entities may be subjects of the facts; all by default.
    pub subjects: AnswersAmong,
    /// Which may be objects.
    pub objects: AnswersAmong,
    /// What is asked of the path of a fact's reason; by default nothing.
    pub paths: PathLimits,
    /// How many threads answer batches in parallel.
    pub workers: usize,
}

impl CompleteOptions {
    /// Which entities `link` is asked of, and which may be answers: it may ask for subjects.
    fn ends_of(&self, link: Link) -> (&AnswersAmong, &AnswersAmong) {
        match link.direction() {
            Direction::Forward => (&self.subjects, &self.objects),
            Direction::Inverse => (&self.objects, &self.subjects),
        }
    }

    /// The checksums of the subjects and the objects, and of what is asked of paths; `None` if all entities may be both, by
    /// any path.
    pub(super) fn ends(&self) -> Option<[Option<Checksum>; 2]> {
        let objects = self.objects.clone().by_paths(self.paths.clone());
        let ends = [self.subjects.checksum(), objects.checksum()];
        ends.iter().any(Option::is_some).then_some(ends)
    }

    fn kept(&self) -> Kept {
        Kept { held_out: self.held_out, most: self.top.unwrap_or(usize::MAX) }
    }
}

/// The result of completing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Completed {
    /// How many missing facts were written.
    pub facts: u64,
    /// How many test facts were found beside them, or are among them.
    #[serde(flatten)]
    pub recovered: Recovered,
    /// How many of the first have the probability of the best; they are in the order of their scores.
    pub tied: u64,
    /// What happened to facts that were held out.
    pub held_out: HeldOutFacts,
    /// How many queries were asked for them.
    pub queries: u64,
    /// How long it took, not counting earlier invocations.
    pub seconds: f64,
    /// The file with the facts.
    pub out: PathBuf,
}

impl fmt::Display for Completed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, recovered, tied, held_out, queries, seconds, out } = self;
        let what = match held_out {
            HeldOutFacts::Hide => "missing facts",
            HeldOutFacts::Show => "missing and held-out facts",
            HeldOutFacts::Only => "held-out facts",
        };
        write!(f, "{facts} {what} from {queries} queries in {seconds:.1} s: {}", out.display())?;
        if *tied >= TIES_SAID {
            let tied = crate::shown::grouped(*tied);
            write!(f, "\nthe first {tied} are equally probable, in the order of their scores")?;
        }
        if recovered.hidden > 0 {
            write!(f, "\n{recovered}")?;
            if *held_out == HeldOutFacts::Hide {
                write!(f, " (not in the file; --held-out show adds them)")?;
            }
        }
        Ok(())
    }
}

impl Model {
    /// Writes the missing facts to `out`, best first over all subjects, each with its probability and its reason, in
    /// the format given by the file extension; `.jsonl` has all fields. If interrupted, the same call resumes.
    ///
    /// # Errors
    /// If the options do not fit the run, the reasoner fails, a file cannot be written, or the user interrupts.
    pub fn complete(
        &self,
        options: &CompleteOptions,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<Completed, AskError> {
        self.complete_in_blocks(options, self.cut(), out, progress)
    }

    fn cut(&self) -> Cut {
        let batch = self.reasoner.reasoner().batch().clamp(1, BATCH);
        Cut { batch, block: batch * BLOCK.div_ceil(batch) }
    }

    fn complete_in_blocks(
        &self,
        options: &CompleteOptions,
        cut: Cut,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<Completed, AskError> {
        let began = Instant::now();
        check_facts(out, self.names())?;
        let work = Work { options, cut, shard: Shard::WHOLE };
        let mut found = Counted::default();
        let write = |rows: &mut dyn Iterator<Item = io::Result<RankedFact>>| {
            Ok(write_facts(out, &mut options.kept().shown(rows, &mut found))?)
        };
        let (facts, queries) = self.work_off(work, out, progress, write)?;
        let recovered = found.of(self.hidden(&self.links_of(options)));
        let seconds = began.elapsed().as_secs_f64();
        let (tied, held_out, out) = (found.tied.count, options.held_out, out.to_owned());
        Ok(Completed { facts, recovered, tied, held_out, queries, seconds, out })
    }

    /// Writes the missing facts of a part to `out`; returns how many there are.
    pub(super) fn complete_part(
        &self,
        options: &CompleteOptions,
        shard: Shard,
        header: &Header,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<u64, AskError> {
        self.complete_part_in_blocks(Work { options, cut: self.cut(), shard }, header, out, progress)
    }

    fn complete_part_in_blocks(
        &self,
        work: Work<'_>,
        header: &Header,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<u64, AskError> {
        let write = |mut rows: &mut dyn Iterator<Item = io::Result<RankedFact>>| {
            Ok(write_part(out, header, |out| Iterator::try_for_each(&mut rows, |row| out.row(&row?)))?)
        };
        Ok(self.work_off(work, out, progress, write)?.0)
    }

    /// Answers the blocks of a part and passes the facts to `write`, which returns how many it wrote. Also returns how
    /// many queries were asked.
    fn work_off(
        &self,
        work: Work<'_>,
        out: &Path,
        progress: &dyn Progress,
        write: impl FnOnce(&mut dyn Iterator<Item = io::Result<RankedFact>>) -> Result<u64, AskError>,
    ) -> Result<(u64, u64), AskError> {
        check_writable(out)?;
        let _claim = claim_file(out).map_err(RunError::writing(out))?.ok_or_else(|| {
            AskError::Cannot(format!("{}: another process is completing into this file", out.display()))
        })?;
        self.check_probability(work.options)?;
        let links = self.links_of(work.options);
        let blocks = Blocks::beside(out, &self.inputs(work, &links)?)?;
        progress.begin("completing", "queries", Some(self.count_asked(work.options, &links)));
        let (done, queries) = match self.answer_blocks(work, &links, &blocks, progress) {
            Err(error) if error.is_interrupted() => {
                progress.end(&"interrupted; run the same command again to resume");
                return Err(error);
            }
            answered => answered?,
        };
        let facts = blocks.merged(&done, work.options.kept(), write)?;
        blocks.remove()?;
        progress.end(&format_args!("{facts} missing facts"));
        Ok((facts, queries))
    }

    /// The default minimum probability of a missing fact: 0.1, or none if the best `top` are asked for or there are no
    /// probabilities.
    ///
    /// # Errors
    /// If the list of stages cannot be read.
    pub fn usual_probability(&self, top: Option<usize>) -> Result<Option<f64>, AskError> {
        Ok((top.is_none() && self.why_no_probability()?.is_none()).then_some(MIN_PROBABILITY))
    }

    /// The links that are asked about.
    pub(super) fn links_of<'a>(&self, options: &'a CompleteOptions) -> Cow<'a, [Link]> {
        if !options.links.is_empty() {
            return Cow::Borrowed(&options.links);
        }
        (0..self.graph().relations() as u32).map(|id| Link::forward(RelationId(id))).collect()
    }

    /// The queries of `links`, one link after the other: about entities that may be at that end of the fact.
    fn asked<'a>(
        &'a self,
        options: &'a CompleteOptions,
        links: &'a [Link],
    ) -> impl Iterator<Item = Query> + use<'a> {
        let kinds = self.artifacts.kinds();
        sensible_queries(self.graph(), links).filter(move |query| {
            let of_kind = || !kinds.are_strict() || kinds.admits(query.link.reversed(), query.subject);
            options.ends_of(query.link).0.has(query.subject) && of_kind()
        })
    }

    /// How many there are.
    pub(super) fn count_asked(&self, options: &CompleteOptions, links: &[Link]) -> u64 {
        self.asked(options, links).count() as u64
    }

    /// How many test facts of the relations of `links` are not in the graph.
    pub(super) fn hidden(&self, links: &[Link]) -> u64 {
        let asked: HashSet<RelationId> = links.iter().filter_map(|link| link.relation()).collect();
        let Dataset { test, test_left_out, .. } = &self.dataset;
        let hidden = |fact: &&Triple| {
            asked.contains(&fact.relation)
                && !self.graph().contains(fact.head, Link::forward(fact.relation), fact.tail)
        };
        let distinct: HashSet<&Triple> = test.iter().chain(test_left_out.iter()).filter(hidden).collect();
        distinct.len() as u64
    }

    fn check_probability(&self, options: &CompleteOptions) -> Result<(), AskError> {
        if options.min_probability.is_some()
            && let Some(why) = self.why_no_probability()?
        {
            return Err(AskError::Cannot(format!("a minimum probability cannot be used; {why}")));
        }
        Ok(())
    }

    /// The checksum of everything that blocks depend on.
    fn inputs(&self, work: Work<'_>, links: &[Link]) -> Result<Checksum, AskError> {
        let Work { options, cut, shard } = work;
        let CompleteOptions { top, min_probability, held_out, .. } = options;
        let links: Vec<u32> = links.iter().map(|link| link.0).collect();
        let beam = self.config().walk.beam;
        let wanted = (top, min_probability, held_out);
        let inputs = Checksum::of(&(crate::VERSION, self.sum()?, links, cut, wanted, shard, beam));
        Ok(match options.ends() {
            Some(ends) => Checksum::of(&(inputs, ends)),
            None => inputs,
        })
    }

    /// Answers the unfinished blocks of the shard; returns the numbers of all of its blocks, and how many queries they
    /// have.
    fn answer_blocks(
        &self,
        Work { options, cut, shard }: Work<'_>,
        links: &[Link],
        blocks: &Blocks,
        progress: &dyn Progress,
    ) -> Result<(Vec<u64>, u64), AskError> {
        let mut queries = self.asked(options, links);
        let best = Best::new(options.top);
        let (mut numbers, mut asked, mut seen) = (Vec::new(), 0, 0);
        for number in 0.. {
            let block: Vec<Query> = queries.by_ref().take(cut.block).collect();
            if block.is_empty() {
                break;
            }
            if shard.has(number) {
                if let Some(ranks) = blocks.ranks(number, options.held_out) {
                    ranks.into_iter().for_each(|rank| best.add(rank));
                } else {
                    let rows = self.block(&block, cut.batch, options, &best, seen, progress)?;
                    blocks.write(number, &rows)?;
                    progress.advance(seen + block.len() as u64, &"");
                }
                numbers.push(number);
                asked += block.len() as u64;
            }
            seen += block.len() as u64;
        }
        Ok((numbers, asked))
    }

    /// The rows of a block, sorted. They are among the `best` from then on.
    fn block(
        &self,
        queries: &[Query],
        batch: usize,
        options: &CompleteOptions,
        best: &Best,
        before: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<RankedFact>, AskError> {
        let needed = self.needed(queries, batch, options, best.least(), progress)?;
        let before = before + (queries.len() - needed.len()) as u64;
        let answer = |batch: &[Query]| {
            if progress.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            // The best of all may be none of the entities that are wanted. All of them are in memory for some queries
            // at a time.
            let all = batch.iter().all(|query| options.ends_of(query.link).1.is_all());
            let at_least = if all { TOP } else { self.graph().entities() };
            let at_once = if all { batch.len() } else { (CANDIDATES / at_least.max(1)).max(1) };
            let mut rows = Vec::new();
            for some in batch.chunks(at_once.max(1)) {
                let found = self.reasoner.search(some, at_least, progress)?;
                let missing: Result<Vec<Vec<RankedFact>>, AskError> =
                    found.par_iter().map(|found| self.missing(found, options, best)).collect();
                rows.extend(missing?.into_iter().flatten());
            }
            Ok(rows)
        };
        let batches: Vec<&[Query]> = needed.chunks(batch).collect();
        let mut rows = by_workers(&batches, options.workers, before, answer, progress)?;
        rows.sort_by_key(|row: &RankedFact| row.0);
        let kept: io::Result<Vec<RankedFact>> = options.kept().of(rows.into_iter().map(Ok)).collect();
        Ok(kept.expect("rows in memory can be read"))
    }

    /// Those of `queries` that may have answers which are likely enough and do not come after `least`. Most have none,
    /// and often that is clear long before their scores are.
    fn needed<'a>(
        &self,
        queries: &'a [Query],
        batch: usize,
        options: &CompleteOptions,
        least: Option<Rank>,
        progress: &dyn Progress,
    ) -> Result<Cow<'a, [Query]>, AskError> {
        let wanted = options.min_probability.into_iter().chain(least.and_then(|least| least.probability));
        let Some(wanted) = wanted.reduce(f64::max) else { return Ok(Cow::Borrowed(queries)) };
        // The bound is computed in another order than the probability, so its last digits may differ.
        let is_needed = |bounds: &ScoreBounds| {
            self.probability_at_most(bounds).is_none_or(|most| most + ROUNDING >= wanted)
        };
        let answer = |batch: &[Query]| {
            if progress.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            Ok(self.reasoner.needed(batch, &is_needed, progress)?)
        };
        let batches: Vec<&[Query]> = queries.chunks(batch).collect();
        by_workers(&batches, options.workers, 0, answer, &Silent).map(Cow::Owned)
    }

    /// The best answers to a query that have a reason, are likely enough, and do not come after all of the `best`,
    /// which those that are shown join. A reason may take longer to find than all scores of a query, so it is looked for last.
    fn missing(
        &self,
        found: &Found,
        options: &CompleteOptions,
        best: &Best,
    ) -> Result<Vec<RankedFact>, AskError> {
        let query = found.query;
        let probabilities = self.probabilities(found);
        let (mut kept, mut supported) = (Vec::new(), 0);
        let answers = options.ends_of(query.link).1;
        for candidate in &found.candidates {
            let probability = probabilities.of(candidate.score);
            let ids = [query.link.0, query.subject.0, candidate.entity.0];
            let rank = Rank { probability: probability.0, score: candidate.score, ids };
            let unlikely =
                options.min_probability.is_some_and(|least| probability.0.is_none_or(|p| p < least));
            // Later candidates are no more likely.
            if supported == TOP || unlikely || best.least().is_some_and(|least| rank > least) {
                break;
            }
            if !answers.has(candidate.entity) || self.is_denied(query, candidate.entity) {
                continue;
            }
            let reasons = match options.paths.is_none() {
                true => self.reasoner.reasons(query, candidate, 1)?,
                false => self.reasoner.reasons_within(query, candidate, 1, &options.paths)?,
            };
            if let Some(reasoned) = reasons.into_iter().next() {
                supported += 1;
                let answer = self.named(query, &reasoned, probability);
                if !options.held_out.needs(answer.held_out) {
                    continue;
                }
                if options.held_out.shows(answer.held_out) {
                    best.add(rank);
                }
                kept.push((rank, candidate.entity, answer));
            }
        }
        // All at once: typical candidates are the same for all answers of a query.
        let entities: Vec<EntityId> = kept.iter().map(|one| one.1).collect();
        let because = match entities.is_empty() {
            true => Vec::new(),
            false => self.because(found, &entities, Detail::Brief)?,
        };
        let fact = |((rank, entity, answer), because): ((Rank, EntityId, Answer), _)| {
            RankedFact(rank, MissingFact::new(query, entity, answer.because(because), self.names()))
        };
        Ok(kept.into_iter().zip(because).map(fact).collect())
    }
}

/// Checks that facts about `names` can be written to `out`.
///
/// # Errors
/// If its ending is unknown, or a name cannot be written to such a file.
pub(super) fn check_facts(out: &Path, names: &Names) -> Result<(), AskError> {
    if !is_json_lines(out) {
        check_predicted(out, names)?;
    }
    Ok(())
}

/// A name that a tab-separated file cannot hold, if there is one.
pub(super) fn breaking_name(names: &Names) -> Option<String> {
    let breaks = |name: &&str| name.contains(['\t', '\n', '\r']);
    names.entities.iter().chain(names.relations.iter()).find(breaks).map(str::to_owned)
}

/// Writes facts in the format given by the extension of `out`; returns how many there were.
///
/// # Errors
/// If the file cannot be written, or `rows` fail.
pub(super) fn write_facts(
    out: &Path,
    rows: &mut dyn Iterator<Item = io::Result<RankedFact>>,
) -> Result<u64, RunError> {
    if is_annotated(out) {
        let mut facts = rows.map(|row| row.map(|row| row.1.annotated()));
        return Ok(write_annotated(out, RdfStyle::default(), &mut facts)?);
    }
    if !is_json_lines(out) {
        let mut facts = rows.map(|row| row.map(|row| PredictedFact::from(row.1)));
        return Ok(write_predicted(out, &mut facts)?);
    }
    let mut facts = 0;
    let written = write_packed(out, |file| {
        for row in rows {
            serde_json::to_writer(&mut *file, &row?.1)?;
            file.write_all(b"\n")?;
            facts += 1;
        }
        Ok(())
    });
    written.map_err(RunError::writing(out)).map(|()| facts)
}

/// Whether facts are written as JSON lines, compressed or not.
pub(super) fn is_json_lines(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let stem = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    stem.ends_with(".jsonl")
}

/// The ranks of the best facts so far, of all threads: facts after the last of them can be skipped. When a fact is
/// skipped depends on which thread is faster; which facts are left in the end does not.
struct Best {
    most: usize,
    kept: Mutex<BinaryHeap<Rank>>,
}

impl Best {
    /// The best `top`, or all.
    fn new(top: Option<usize>) -> Self {
        Self { most: top.unwrap_or(usize::MAX), kept: Mutex::default() }
    }

    fn add(&self, rank: Rank) {
        // If all facts are wanted, no rank has to be kept.
        if self.most == usize::MAX {
            return;
        }
        let mut kept = self.kept();
        kept.push(rank);
        if kept.len() > self.most {
            kept.pop();
        }
    }

    /// The last of them, once there are enough.
    fn least(&self) -> Option<Rank> {
        if self.most == usize::MAX {
            return None;
        }
        let kept = self.kept();
        if kept.len() < self.most { None } else { kept.peek().copied() }
    }

    fn kept(&self) -> MutexGuard<'_, BinaryHeap<Rank>> {
        self.kept.lock().expect("no code panics while it holds the ranks")
    }
}
