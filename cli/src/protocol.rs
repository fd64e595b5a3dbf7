//! The ranking options of all verbs that evaluate.

use clap::ValueEnum;
use ruleguider::eval::{self, Protocol, Side, Ties, Unseen};

/// How to ask and how to rank.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Ranking {
    /// Which end of the triples is asked for [default: as the run was ranked, both for a graph of one's own; tail without
    /// a run]
    #[arg(long, value_enum)]
    direction: Option<DirectionChoice>,
    /// How a target is ranked among entities of the same score
    #[arg(long, value_enum, default_value_t = TiesChoice::Realistic)]
    ties: TiesChoice,
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

/// Which end of the triples is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DirectionChoice {
    /// (head, relation, ?)
    Tail,
    /// (?, relation, tail)
    Head,
    /// Both, each query counted as one
    Both,
}

/// How a target is ranked among entities of the same score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TiesChoice {
    /// The mean of their ranks
    Realistic,
    /// Before them
    Optimistic,
    /// After them
    Pessimistic,
    /// As the published code happens to sort them
    Published,
}

/// The split whose queries are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Split {
    /// The split for tuning
    Valid,
    /// The split for reporting
    Test,
}

impl From<Split> for eval::Split {
    fn from(split: Split) -> Self {
        match split {
            Split::Valid => eval::Split::Valid,
            Split::Test => eval::Split::Test,
        }
    }
}

impl Ranking {
    /// These options as the library's protocol, which ranks all of a split; without a direction, `side` is asked for.
    pub fn protocol(self, side: Side) -> Protocol {
        Protocol {
            side: match self.direction {
                None => side,
                Some(DirectionChoice::Tail) => Side::Tail,
                Some(DirectionChoice::Head) => Side::Head,
                Some(DirectionChoice::Both) => Side::Both,
            },
            ties: match self.ties {
                TiesChoice::Realistic => Ties::Realistic,
                TiesChoice::Optimistic => Ties::Optimistic,
                TiesChoice::Pessimistic => Ties::Pessimistic,
                TiesChoice::Published => Ties::Published,
            },
            unseen: if self.leave_out_unseen { Unseen::LeaveOut } else { Unseen::Keep },
            all: true,
            most: None,
        }
    }
}
