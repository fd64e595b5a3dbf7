//! The command line as people and programs meet it. One program, because linking two dozen takes longer than their tests.

mod judged;
mod served;
#[path = "../../../tests/skip/mod.rs"]
mod skip;
mod tool;

mod axe;

mod bad_input;
mod browser;
mod complete;
mod data;
mod elsewhere;
mod embed;
mod generate;
mod given;
mod guide;
mod help;
mod judge;
mod judge_browser;
mod labels;
mod limits;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod live_page;
#[cfg(feature = "live")]
mod live_routes;
mod names;
mod one_probability;
mod page;
mod pictures;
mod reasons;
mod reference;
mod report;
mod robustness;
mod rules;
mod run;
mod serve;
mod serve_limits;
mod shards;
mod sweep;
mod tampered;
mod terminal;
mod views;
mod writers;
mod your_data;
