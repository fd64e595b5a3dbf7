//! The parts of a job that a process makes, and the report on each.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use anyhow::ensure;
use ruleguider::ask::{AskError, ShardReport};
use ruleguider::shard::Shard;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What stands for the number of a part in the name of its file.
const NUMBER: &str = "{}";

/// Which parts a process makes: one, written `3/16`, or several one after another, written `5-8/16`. What is read or
/// opened first serves all of them.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    first: Shard,
    last: Shard,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let several = || {
            let (range, count) = text.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let shard = |index: &str| Shard::new(index.parse().ok()?, count.parse().ok()?);
            Some(Self { first: shard(first)?, last: shard(last)? })
        };
        match several().filter(|share| share.first.index() <= share.last.index()) {
            Some(share) => Ok(share),
            None => text.parse().map(|shard| Self { first: shard, last: shard }).map_err(|_: String| {
                format!(
                    "expected i/n with i from 1 to n, such as 2/8, or several, such as 3-6/8, found {text}"
                )
            }),
        }
    }
}

impl Share {
    /// Checks that every part gets a name of its own.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(self, out: &Path) -> anyhow::Result<()> {
        let numbered =
            out.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(NUMBER));
        ensure!(
            numbered || self.first == self.last,
            "--out: expected a name with {NUMBER} for the number of each part, such as part-{NUMBER}.shard, found {}",
            out.display()
        );
        Ok(())
    }

    /// Has `make` write every part, to a file named after `out`, and prints its report.
    ///
    /// # Errors
    /// If several parts would have the same name, or one cannot be made; those before it are kept.
    pub fn each(
        self,
        out: &Path,
        common: &Common,
        mut make: impl FnMut(Shard, &Path) -> Result<ShardReport, AskError>,
    ) -> anyhow::Result<Outcome> {
        self.check(out)?;
        for index in self.first.index()..=self.last.index() {
            let shard = Shard::new(index, self.first.count()).expect("a part between two parts");
            let report = match make(shard, &named(out, shard)) {
                Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
                report => report?,
            };
            if common.json { console::print_json(&report) } else { console::print(&report) }?;
        }
        Ok(Outcome::Done)
    }
}

/// The file of a part: `out` with the number of the part.
fn named(out: &Path, shard: Shard) -> PathBuf {
    match out.file_name().and_then(|name| name.to_str()) {
        Some(name) => out.with_file_name(name.replace(NUMBER, &shard.index().to_string())),
        None => out.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_part_or_a_range_of_them() {
        let parts =
            |text: &str| text.parse::<Share>().map(|share| (share.first.to_string(), share.last.to_string()));
        assert_eq!(parts("3/16"), Ok(("3/16".to_owned(), "3/16".to_owned())));
        assert_eq!(parts("5-8/16"), Ok(("5/16".to_owned(), "8/16".to_owned())));
        assert_eq!(parts("2-2/2"), Ok(("2/2".to_owned(), "2/2".to_owned())));
        for wrong in ["0/4", "5/4", "3-2/4", "0-2/4", "1-5/4", "1-/4", "-2/4", "1-2", "1-2-3/4", "", "1–2/4"]
        {
            let message = parts(wrong).unwrap_err();
            assert!(message.contains("3-6/8") && message.ends_with(wrong), "{message}");
        }
    }

    #[test]
    fn the_number_of_a_part_is_put_into_its_name() {
        let third = Shard::new(3, 4).unwrap();
        assert_eq!(named(Path::new("a{}/b-{}.shard"), third), Path::new("a{}/b-3.shard"));
        assert_eq!(named(Path::new("b.shard"), third), Path::new("b.shard"));
    }
}
