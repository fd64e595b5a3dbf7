//! Long jobs split over many processes: which process does which part, the files they write, and how these are
//! merged.
//!
//! A [`Shard`] is the i-th of n parts. A part is a file of rows between a [`Header`], which says what the rows are
//! and what they were made from, and a last line with their number and checksum. [`Parts`] is a complete set of parts
//! of one job; parts with another seed, version, data or settings are refused. The meaning of rows is left to the
//! writer.
//!
//! Invariant: the merged result does not depend on the number of parts.

mod file;
mod merge;
mod parts;

pub use file::{Header, Part, RowWriter, ShardKind, check_name, is_complete, is_whole, write_part};
pub use merge::Merge;
pub use parts::Parts;

use ruleguider_support::shown::Shown;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

/// A part of a job: the `index`-th of `count`, from 1. Written `2/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    /// The whole job.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// The `index`-th of `count` parts, from 1; `None` if there is no such part.
    pub fn new(index: u64, count: u64) -> Option<Self> {
        (1..=count).contains(&index).then_some(Self { index, count })
    }

    /// Which part, from 1.
    pub fn index(self) -> u64 {
        self.index
    }

    /// How many parts there are.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Whether the block of this number, from 0, belongs to this part, if blocks are dealt round-robin.
    pub fn has(self, block: u64) -> bool {
        block % self.count == self.index - 1
    }

    /// The index among all items of this part's `item`-th item, both from 0, if blocks of `block` items are dealt
    /// round-robin.
    pub fn place(self, item: usize, block: usize) -> usize {
        let (round, within) = (item / block, item % block);
        (round * self.count as usize + self.index as usize - 1) * block + within
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let shard = parts.and_then(|(index, count)| Shard::new(index, count));
        shard.ok_or_else(|| format!("expected i/n with i from 1 to n, such as 2/8, found {text}"))
    }
}

/// What can go wrong with parts.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// A part cannot be read.
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot be written", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file without the name of a part.
    #[error("{}: a part has to be merged before it can be used; expected a name that ends in .shard, .shard.gz or .shard.zst", path.display())]
    Name {
        /// Which file.
        path: PathBuf,
    },
    /// A file that is not a part, or not a complete one.
    #[error("{}: {}; make the part again", path.display(), Shown(what))]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// No parts.
    #[error("expected at least one part to merge")]
    None,
    /// Parts that do not belong together.
    #[error("{}: {} {}, but {} in {}; merge parts of the same job", path.display(), Shown(what), Shown(here), Shown(there), other.display())]
    Differs {
        /// The part that differs.
        path: PathBuf,
        /// The first part.
        other: PathBuf,
        /// The field in which they differ.
        what: String,
        /// Its value in this part.
        here: String,
        /// Its value in the first part.
        there: String,
    },
    /// A part made by another version of the program.
    #[error("{}: made by another version of the program ({}; this is {}); merge with that one, or make the part again", path.display(), Shown(made), ruleguider_support::VERSION)]
    Version {
        /// The part.
        path: PathBuf,
        /// The version that made it.
        made: String,
    },
    /// The same part given twice.
    #[error("{}: is part {shard}, and so is {}; give each part once", path.display(), other.display())]
    Twice {
        /// The second.
        path: PathBuf,
        /// The first.
        other: PathBuf,
        /// Which part it is.
        shard: Shard,
    },
    /// Some parts are missing.
    #[error("of {count} parts {missing} {}; run the same command with the number of each missing part", if *several { "are missing" } else { "is missing" })]
    Missing {
        /// How many there are.
        count: u64,
        /// The numbers of those that are missing.
        missing: String,
        /// Whether more than one is missing.
        several: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_they_are_read() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!((shard.index(), shard.count(), shard.to_string().as_str()), (2, 8, "2/8"));
        assert_eq!(serde_json::to_string(&shard).unwrap(), "\"2/8\"");
        assert_eq!(serde_json::from_str::<Shard>("\"2/8\"").unwrap(), shard);
        for wrong in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_are_those_of_the_items_of_its_blocks() {
        let items: Vec<usize> = (0..23).collect();
        for count in [1, 2, 3, 7, 16] {
            for index in 1..=count {
                let shard = Shard::new(index, count).unwrap();
                let blocks = items.chunks(4).zip(0..).filter(|(_, number)| shard.has(*number));
                let expected: Vec<usize> = blocks.flat_map(|(block, _)| block.to_vec()).collect();
                let places: Vec<usize> = (0..expected.len()).map(|item| shard.place(item, 4)).collect();
                assert_eq!(places, expected, "{shard}");
            }
        }
    }
}
