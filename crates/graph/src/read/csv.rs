//! Reads comma-separated records, quoted where needed, with a header or without. A header may name the columns in any
//! order.

use super::facts::Facts;
use super::records::{Bad, Records};
use super::table::{self, Rows};
use super::{Builder, ReadOptions};
use crate::GraphError;
use std::io::Read;
use std::path::Path;

impl<R: Read> Rows for Records<R> {
    fn advance(&mut self) -> Result<bool, Bad> {
        Records::advance(self)
    }
    fn line(&self) -> u64 {
        self.first_line()
    }
    fn len(&self) -> usize {
        Records::len(self)
    }
    fn field(&self, place: usize) -> &[u8] {
        Records::field(self, place)
    }
    fn words(&self) -> &'static str {
        "comma-separated fields"
    }
}

/// Reads all of `source` into `builder`.
pub(super) fn read(
    path: &Path,
    source: impl Read,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    table::read(path, &mut Records::new(source), options, builder)
}
