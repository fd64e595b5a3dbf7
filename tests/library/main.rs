//! The library as other programs meet it. One program, so that it is linked once and its tests run side by side.

#[path = "../skip/mod.rs"]
mod skip;

mod benchmark_graphs;
mod book;
mod dependency_law;
mod examples;
mod further_member;
mod fuzz_corpus;
mod planted_rules;
mod propagated_reasons;
mod published_recipes;
mod reading;
mod real_graphs;
mod rules_of_peers;
mod workflows;
