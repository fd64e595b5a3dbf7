//! The ranking options of all verbs that evaluate.

use crate::arguments::one_of;
use clap::builder::TypedValueParser;
use ruleguider::eval::{Protocol, Side, Split, Ties, Unseen};

/// How to ask and how to rank.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Ranking {
    /// Which end of the triples is asked for [default: as the run was ranked, both for a graph of one's own; tail without
    /// a run]
    #[arg(long, value_parser = sides())]
    direction: Option<Side>,
    /// How a target is ranked among entities of the same score
    #[arg(long, value_parser = ties(), default_value = "realistic")]
    ties: Ties,
    /// Leave out triples with an entity that has no fact in the graph
    #[arg(long)]
    leave_out_unseen: bool,
}

/// How much of a split is ranked.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Extent {
    /// Rank every triple, even if that takes hours [default: an even sample where all of them would need more than
    /// 10^11 scores]
    #[arg(long)]
    all: bool,
}

impl Extent {
    /// `protocol` for so much of a split.
    pub fn of(self, protocol: Protocol) -> Protocol {
        Protocol { all: self.all, ..protocol }
    }
}

fn sides() -> impl TypedValueParser<Value = Side> {
    one_of([
        ("tail", "(head, relation, ?)", Side::Tail),
        ("head", "(?, relation, tail)", Side::Head),
        ("both", "Both, each query counted as one", Side::Both),
    ])
}

fn ties() -> impl TypedValueParser<Value = Ties> {
    one_of([
        ("realistic", "The mean of their ranks", Ties::Realistic),
        ("optimistic", "Before them", Ties::Optimistic),
        ("pessimistic", "After them", Ties::Pessimistic),
        ("published", "As the published code happens to sort them", Ties::Published),
    ])
}

/// Parses the split whose queries are asked.
pub fn splits() -> impl TypedValueParser<Value = Split> {
    one_of([
        ("valid", "The split for tuning", Split::Valid),
        ("test", "The split for reporting", Split::Test),
    ])
}

impl Ranking {
    /// These options as the library's protocol, which ranks all of a split; without a direction, `side` is asked for.
    pub fn protocol(self, side: Side) -> Protocol {
        Protocol {
            side: self.direction.unwrap_or(side),
            ties: self.ties,
            unseen: if self.leave_out_unseen { Unseen::LeaveOut } else { Unseen::Keep },
            all: true,
            most: None,
        }
    }
}
