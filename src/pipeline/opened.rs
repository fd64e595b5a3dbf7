//! A run opened for questions: its data, its settings, what it learnt, and who answers.

use super::answer::{Answer, Reasoned, RuleSaid, Step, in_words};
use super::config::{Config, System};
use super::directory::{BLEND, CONFIG, METRICS, RESULTS, RunDirectory};
use super::joint::path_table;
use super::material::Learnable;
use super::metrics::{self, Metric};
use super::reason::{ByEmbedding, ByRules, Explains, by_rule};
use super::run::{Order, RunReport, Stage};
use super::stage::Stages;
use super::{Checksum, Manifest, PipelineError, learn};
use crate::eval::{Protocol, Report, Scored, Truth, evaluate};
use crate::graph::{Adjacency, Dataset, Direction, EntityId, Link, Query, Triple};
use crate::progress::Progress;
use crate::rule::{Reason, ScoredRule};
use crate::tensor::Device;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A split that can be ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// What nothing was learnt from.
    #[default]
    Test,
    /// What was tuned on.
    Valid,
}

/// A run that can be asked.
pub struct Opened {
    directory: RunDirectory,
    config: Config,
    dataset: Dataset,
    learnable: Learnable,
    rules: Vec<ScoredRule>,
    device: Device,
}

/// The answers to a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The entity asked about, by id.
    pub subject: String,
    /// What is asked.
    pub relation: String,
    /// Whether the head is asked for.
    pub inverse: bool,
    /// Answers that are no facts of the graph, best first.
    pub answers: Vec<Answer>,
    /// Answers that the graph has already, by label.
    pub known: Vec<String>,
}

/// Why, or why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The entity asked about, by id.
    pub subject: String,
    /// What is asked.
    pub relation: String,
    /// Whether the head is asked for.
    pub inverse: bool,
    /// The answer that is explained, by id.
    pub object: String,
    /// Whether the graph has this fact already.
    pub known: bool,
    /// Its place among all answers that the graph does not have, from 1; absent if it is not predicted at all.
    pub rank: Option<usize>,
    /// The best answer instead, if that is another one.
    pub instead: Option<Answer>,
    /// The ways to the object, best first: empty if it is not predicted.
    pub answers: Vec<Answer>,
    /// The rules that predict it, most confident first, each with a path that grounds it.
    pub rules: Vec<GroundedRule>,
}

/// A rule with a path that grounds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroundedRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleSaid,
    /// The label of the entity where the path begins.
    pub from: String,
    /// The path.
    pub path: Vec<Step>,
}

/// A query of the test split with the top answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The label of the entity asked about.
    pub subject: String,
    /// What is asked.
    pub relation: String,
    /// The top answer.
    pub answer: Answer,
    /// The same in plain words.
    pub words: String,
    /// Whether the test split has this answer.
    pub true_in_test: bool,
}

impl Opened {
    /// Opens the run at `path`; `data` says where its data is now, if it has moved.
    ///
    /// # Errors
    /// If there is no run, it is unfinished, its files are damaged, or its data has changed.
    pub fn open(path: &Path, data: Option<&Path>, device: &Device) -> Result<Self, PipelineError> {
        let directory = RunDirectory::look_at(path)?;
        let manifest = Manifest::read(&directory)?;
        let text = directory.read(CONFIG)?.ok_or_else(|| PipelineError::Broken {
            path: directory.file(CONFIG),
            what: "is gone".to_owned(),
        })?;
        let config = Config::from_toml(&text, &directory.file(CONFIG).display().to_string())?;
        let dataset = manifest.dataset(path, data)?;
        let learnable = Learnable::of(&dataset, &config);
        Self::with(directory, config, dataset, learnable, device.clone())
    }

    /// The run that `order` has just made.
    pub(super) fn from_parts(
        directory: RunDirectory,
        order: &Order,
        dataset: Dataset,
        learnable: Learnable,
    ) -> Result<Self, PipelineError> {
        Self::with(directory, order.config.clone(), dataset, learnable, order.device.clone())
    }

    fn with(
        directory: RunDirectory,
        config: Config,
        dataset: Dataset,
        learnable: Learnable,
        device: Device,
    ) -> Result<Self, PipelineError> {
        let stages = Stages::of(&directory)?;
        for stage in Stage::of(&config) {
            stages.expect_whole(stage.name())?;
        }
        let rules = match Stage::of(&config).contains(&Stage::Rules) {
            true => learn::mined(&directory, &learnable)?,
            false => Vec::new(),
        };
        Ok(Self { directory, config, dataset, learnable, rules, device })
    }

    /// Where it is.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Its data.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its rules.
    pub fn rules(&self) -> &[ScoredRule] {
        &self.rules
    }

    /// The checksum of what it was learnt from.
    pub fn checksum(&self) -> &Checksum {
        &self.learnable.checksum
    }

    /// What the run came to.
    ///
    /// # Errors
    /// If it has not come to its end, or the file is damaged.
    pub fn results(&self) -> Result<RunReport, PipelineError> {
        let Some(text) = self.directory.read(RESULTS)? else {
            return Err(PipelineError::Missing {
                path: self.directory.path().to_owned(),
                what: "results".to_owned(),
                remedy: "run the same `ruleguider run` again to finish it".to_owned(),
            });
        };
        serde_json::from_str(&text).map_err(|error| PipelineError::Broken {
            path: self.directory.file(RESULTS),
            what: format!("is damaged ({error})"),
        })
    }

    /// Its learning curves.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn metrics(&self) -> Result<Vec<Metric>, PipelineError> {
        metrics::read(&self.directory.file(METRICS))
    }

    /// Who answers in this run.
    ///
    /// # Errors
    /// If what was learnt cannot be loaded.
    pub fn reasoner(&self) -> Result<Box<dyn Explains + '_>, PipelineError> {
        let Self { directory, learnable, config, device, .. } = self;
        Ok(match config.system {
            System::Rules => {
                Box::new(ByRules::new(&learnable.graph, self.rules.clone(), config.rules.apply_options()))
            }
            System::Embedding => {
                Box::new(ByEmbedding::new(learn::load_embedding(directory, learnable, device)?))
            }
            System::Walker => Box::new(learn::load_walker(directory, learnable, config.walk.beam, device)?),
            System::Blend => {
                let broken = |what: String| PipelineError::Broken { path: directory.file(BLEND), what };
                let text = directory.read(BLEND)?.ok_or_else(|| broken("is gone".to_owned()))?;
                let recipe =
                    serde_json::from_str(&text).map_err(|error| broken(format!("is damaged ({error})")))?;
                Box::new(learn::load_blend(directory, learnable, config, &recipe, device)?)
            }
        })
    }

    /// For what share of the test queries the path of the top answer is a rule; none where nothing walks.
    ///
    /// # Errors
    /// If the walker fails.
    pub fn rule_share(&self, reasoner: &dyn Explains) -> Result<Option<f64>, PipelineError> {
        let Some(walker) = reasoner.walker() else { return Ok(None) };
        let rules = path_table(&self.rules, self.config.walk.hops, self.config.rules.threshold);
        let asked: Vec<Query> =
            self.dataset.test.iter().map(|&triple| Query::of(triple, Direction::Forward).0).collect();
        Ok(Some(walker.rule_share(&asked, &rules)?))
    }

    /// Ranks the true answers of a split.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub fn evaluate(
        &self,
        reasoner: &dyn Explains,
        split: Split,
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Report, PipelineError> {
        let dataset = &self.dataset;
        let (triples, answers): (&[Triple], Adjacency) = match split {
            Split::Test => (&dataset.test, dataset.answers()),
            // Tuning must not profit from test answers, not even by having them filtered.
            Split::Valid => {
                let known = &dataset.known;
                let splits: [&[Triple]; 3] = [&known.facts, &known.queries, &known.valid];
                (&known.valid, Adjacency::new(dataset.names.entities.len(), &splits))
            }
        };
        let truth = Truth { graph: &self.learnable.graph, answers: &answers };
        let evaluation = evaluate(reasoner.reasoner(), triples, truth, protocol, progress)?;
        let mut report = evaluation.report(truth, &dataset.names);
        if split == Split::Test {
            report.left_out += dataset.test_left_out.len() * protocol.side.directions().len();
        }
        Ok(report)
    }

    /// The `top` best answers to `query` that the graph does not have, and those that it has.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn predict(
        &self,
        reasoner: &dyn Explains,
        query: Query,
        top: usize,
    ) -> Result<Prediction, PipelineError> {
        let mut found = self.predict_all(reasoner, &[query], top)?;
        Ok(found.pop().expect("one query has one prediction"))
    }

    /// The answers to many queries at once.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn predict_all(
        &self,
        reasoner: &dyn Explains,
        queries: &[Query],
        top: usize,
    ) -> Result<Vec<Prediction>, PipelineError> {
        let names = &self.dataset.names;
        let reasoned = reasoner.reasoned(queries, top, &self.learnable.graph)?;
        let prediction = |(query, answers): (&Query, Vec<Reasoned>)| {
            let known = self.learnable.graph.targets(query.subject, query.link);
            Prediction {
                subject: names.entity(query.subject).to_owned(),
                relation: self.relation_name(*query),
                inverse: query.link.direction() == Direction::Inverse,
                answers: answers.iter().map(|answer| Answer::new(answer, names)).collect(),
                known: known.iter().map(|&entity| names.label(entity).to_owned()).collect(),
            }
        };
        Ok(queries.iter().zip(reasoned).map(prediction).collect())
    }

    /// Why `object` is, or is not, an answer to `query`.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn explain(
        &self,
        reasoner: &dyn Explains,
        query: Query,
        object: EntityId,
    ) -> Result<Explanation, PipelineError> {
        let names = &self.dataset.names;
        let graph = &self.learnable.graph;
        let ranked = reasoner.ranked(query, graph)?;
        let rank = ranked.iter().position(|scored| scored.entity == object).map(|at| at + 1);
        let instead = match ranked.first() {
            Some(first) if first.entity != object => {
                reasoner.reasons(query, *first, 1)?.first().map(|best| Answer::new(best, names))
            }
            _ => None,
        };
        let ways = match rank {
            Some(place) => reasoner.reasons(query, ranked[place - 1], WAYS)?,
            None => Vec::new(),
        };
        let rules = self.rules_for(query, object);
        Ok(Explanation {
            subject: names.entity(query.subject).to_owned(),
            relation: self.relation_name(query),
            inverse: query.link.direction() == Direction::Inverse,
            object: names.entity(object).to_owned(),
            known: graph.contains(query.subject, query.link, object),
            rank,
            instead,
            answers: ways.iter().map(|way| Answer::new(way, names)).collect(),
            rules,
        })
    }

    fn rules_for(&self, query: Query, object: EntityId) -> Vec<GroundedRule> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let names = &self.dataset.names;
        let options = self.config.rules.apply_options();
        let by_rules = ByRules::new(&self.learnable.graph, self.rules.clone(), options);
        let fired = by_rules.rules().explain(query, object);
        let said = |reason: &Reason<'_>| {
            let answer = Scored { entity: object, score: reason.confidence };
            let Answer { from, path, .. } = Answer::new(&by_rule(reason, answer), names);
            GroundedRule { rule: RuleSaid::new(reason.rule, names), from, path }
        };
        fired.iter().take(WAYS).map(said).collect()
    }

    /// Test queries with their top answers: of different relations, those with a longer reason first.
    ///
    /// # Errors
    /// If the reasoner fails.
    pub fn examples(&self, reasoner: &dyn Explains, count: usize) -> Result<Vec<Example>, PipelineError> {
        let names = &self.dataset.names;
        let test = &self.dataset.test;
        let looked_at = (count * 40).clamp(count, 400);
        let stride = (test.len() / looked_at.max(1)).max(1);
        let queries: Vec<Query> = test
            .iter()
            .step_by(stride)
            .take(looked_at)
            .map(|&triple| Query::of(triple, Direction::Forward).0)
            .collect();
        let reasoned = reasoner.reasoned(&queries, 1, &self.learnable.graph)?;
        let mut found: Vec<(Query, Reasoned)> = queries
            .into_iter()
            .zip(reasoned)
            .filter_map(|(query, answers)| Some((query, answers.into_iter().next()?)))
            .collect();
        // Those that say most first: by a rule, on a path that turns back nowhere, of more hops. Stable, so that among
        // equals the order of the split decides.
        found.sort_by_key(|(query, answer)| {
            let mut visited: Vec<EntityId> = vec![query.subject];
            visited.extend(answer.path.iter().filter(|hop| hop.link != Link::NO_OP).map(|hop| hop.target));
            let hops = visited.len();
            visited.sort_unstable();
            visited.dedup();
            std::cmp::Reverse((answer.rule.is_some(), visited.len() == hops, hops))
        });
        let mut chosen: Vec<(Query, Reasoned)> = Vec::new();
        while chosen.len() < count && !found.is_empty() {
            // Relations take turns: next comes one that has been shown least often.
            let shown = |query: &Query| chosen.iter().filter(|(other, _)| other.link == query.link).count();
            let fewest = found.iter().map(|(query, _)| shown(query)).min().unwrap_or(0);
            let next = found.iter().position(|(query, _)| shown(query) == fewest).unwrap_or(0);
            chosen.push(found.remove(next));
        }
        let example = |(query, reasoned): (Query, Reasoned)| {
            let answer = Answer::new(&reasoned, names);
            let triple = Triple {
                head: query.subject,
                relation: query.link.relation().expect("a test triple has a relation"),
                tail: reasoned.entity,
            };
            Example {
                subject: names.label(query.subject).to_owned(),
                relation: self.relation_name(query),
                words: in_words(query, &answer, names),
                answer,
                true_in_test: test.contains(&triple),
            }
        };
        Ok(chosen.into_iter().map(example).collect())
    }

    fn relation_name(&self, query: Query) -> String {
        query.link.relation().map_or("", |relation| self.dataset.names.relation(relation)).to_owned()
    }
}

/// How many ways to an answer, and rules for it, an explanation shows.
const WAYS: usize = 5;
