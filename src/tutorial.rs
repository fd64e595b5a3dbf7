//! The library from the first graph to an answer with its reason. Every program here is run by `cargo test --doc`.
//!
//! 1. [A graph](#a-graph)
//! 2. [An answer at once](#an-answer-at-once)
//! 3. [Learning](#learning)
//! 4. [Reading an answer](#reading-an-answer)
//! 5. [How good is it?](#how-good-is-it)
//! 6. [Given facts](#given-facts)
//! 7. [Facts that arrive](#facts-that-arrive)
//! 8. [Parts on their own](#parts-on-their-own)
//!
//! # A graph
//!
//! [`graph::read`](crate::graph::read) takes a folder of splits or a single file, in any of the
//! [formats](crate::graph::FileKind); [`MemoryTriples`](crate::graph::MemoryTriples) takes triples that a program has.
//! What is read is a [`Dataset`](crate::graph::Dataset): names, the facts that may be learnt from, and a test split
//! that nothing which learns can see.
//!
//! ```
//! use ruleguider::graph::{self, ReadOptions, SplitShares};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("capitals.tsv");
//! std::fs::write(&path, "Paris\tcapital_of\tFrance\nLyon\tlies_in\tFrance\nParis\tlies_in\tFrance\n")?;
//! // By default a tenth of a file is held out for validation and another for the test; three facts are too few.
//! let options = ReadOptions { shares: SplitShares::WHOLE, ..ReadOptions::default() };
//! let data = graph::read(&path, &options)?;
//! assert_eq!(data.names.entities.len(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! The rest of the tutorial uses a generated family, whose rules are known.
//!
//! # An answer at once
//!
//! [`ask::instant`](crate::ask::instant()) answers with a network that was trained on other graphs. Nothing is learnt.
//!
//! ```
//! use ruleguider::{ask, generate, progress::Silent, run::Source, tensor::Device};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let family = generate::family(60, 1).dataset;
//! let (someone, asked) = (family.names.entity(family.test[0].head).to_owned(), family.test[0].relation);
//! let relation = family.names.relation(asked).to_owned();
//! let files = tempfile::tempdir()?; // of the model, as long as it is in use
//! let source = Source::Memory { name: "family".to_owned() };
//! let model = ask::instant(source, family, files.path(), None, &Device::cpu(2)?, 1, &Silent)?;
//! for answer in model.predict(&someone, &relation, 3)?.answers {
//!     println!("{:.2} {} because {}", answer.score, answer.label, answer.reason);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Learning
//!
//! [`Learn`](crate::Learn) plans what the time allows, trains it, blends it, measures it on the test split and calibrates
//! probabilities. Everything is kept in a folder, the *run*: the same call goes on where it was stopped, and
//! [`Model::open`](crate::Model::open) opens it. Any [setting](crate::config::Config) can be given.
//!
//! ```
//! use ruleguider::{Learn, Model};
//!
//! # fn main() -> Result<(), ruleguider::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let out = folder.path().join("run");
//! let model = Learn::demonstration().set("system=rules").set("rules.samples=500").out(&out).run()?;
//! assert!(model.results()?.report.figures.mrr > 0.5);
//! let again = Model::open(&out)?;
//! assert_eq!(again.rules().len(), model.rules().len());
//!
//! // # Reading an answer
//! let test = model.dataset().test[0];
//! let (subject, relation) = (model.names().entity(test.head), model.names().relation(test.relation));
//! let best = model.predict(subject, relation, 5)?.answers.swap_remove(0);
//! println!("{} with probability {:.2}: {}", best.label, best.probability, best.reason);
//! for step in &best.reason.path {
//!     println!("  {}", step.relation); // every hop is a fact of the graph
//! }
//! let why = model.explain(subject, relation, &best.entity)?;
//! println!("rank {:?}, predicted by {} rules", why.rank, why.rules.len());
//! # Ok(())
//! # }
//! ```
//!
//! # Reading an answer
//!
//! The program above goes on to ask. An [`Answer`](crate::ask::Answer) has
//!
//! - a *score*, by which the answers of one question are ordered,
//! - a *probability*, comparable across questions, if the run was calibrated,
//! - a [`Reason`](crate::ask::Reason): a path of facts, the rule that it follows, and how often that rule was right,
//! - `held_out`, if the data have it and it was hidden to be found.
//!
//! # How good is it?
//!
//! [`Model::evaluate`](crate::Model::evaluate) ranks a split, filtered. Any [`Reasoner`](crate::eval::Reasoner) is ranked by
//! [`eval::evaluate_split`](crate::eval::evaluate_split), also one of your own.
//!
//! ```
//! use ruleguider::eval::{Protocol, Split, evaluate_split};
//! use ruleguider::rule::{ApplyOptions, MineOptions, MiningBudget, RuleReasoner, mine};
//! use ruleguider::{generate::demonstration, progress::Silent};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let family = demonstration();
//! let graph = family.graph();
//! let options = MineOptions { budget: MiningBudget::Samples(500), ..MineOptions::default() };
//! let rules = mine(&graph, &options, &Silent)?.rules;
//! let reasoner = RuleReasoner::new(&graph, rules, ApplyOptions::default());
//! let report = evaluate_split(&reasoner, &family, Split::Test, &graph, Protocol::default(), &Silent)?;
//! assert!(report.figures.mrr > 0.5);
//! # Ok(())
//! # }
//! ```
//!
//! # Given facts
//!
//! [`Model::score`](crate::Model::score) judges facts that somebody else proposes, [`Model::doubt`](crate::Model::doubt)
//! those of the graph itself; `examples/score.rs` does the first.
//!
//! # Facts that arrive
//!
//! [`Model::with_edits`](crate::Model::with_edits) answers on the graph with facts added and removed, and trains nothing;
//! `examples/edits.rs` shows it, and [`Learn::update`](crate::Learn::update) learns from them later.
//!
//! # Parts on their own
//!
//! [`rule`](crate::rule) mines and applies rules, [`embed`](crate::embed) trains embeddings, [`propagate`](crate::propagate)
//! trains networks along paths, [`tensor`](crate::tensor) is the tape beneath them. A model of your own takes part in all of
//! this as a [`Member`](crate::run::member::Member); `examples/own_member.rs` is one.
