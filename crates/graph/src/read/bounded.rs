//! A source of statements none of which may be longer than [`LONGEST`]: a small file must not use up the memory by
//! what it decompresses to or what its XML entities expand to.

use super::entities::Entities;
use memchr::memchr_iter;
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

/// The most bytes that a line, a record, a statement or a name may have.
pub(super) const LONGEST: usize = 16 << 20;

/// [`LONGEST`] in words.
pub(super) const LONGEST_IN_WORDS: &str = "16 MB";

/// A limit that a file exceeds, as an I/O error.
#[derive(Debug)]
pub(super) struct Excess {
    /// What was expected there.
    pub(super) expected: String,
    /// What was found.
    pub(super) found: &'static str,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for Excess {}

/// The position of a [`Bounded`] source, shared with the parser that reads from it.
#[derive(Default)]
pub(super) struct Place {
    since: Cell<u64>,
    lines: Cell<u64>,
}

impl Place {
    /// A statement has ended: the length of the next one counts from 0.
    pub(super) fn statement_ended(&self) {
        self.since.set(0);
    }

    /// The line that was read last, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.lines.get() + 1
    }
}

/// Passes on what it reads, as long as no statement is too long.
pub(super) struct Bounded<R> {
    source: R,
    place: Rc<Place>,
    /// Measures the expansion of XML entities; `None` if the source is not XML.
    entities: Option<Entities>,
}

impl<R: Read> Bounded<R> {
    /// Limits `source`; `xml` says whether to measure XML entities.
    pub(super) fn new(source: R, xml: bool) -> (Self, Rc<Place>) {
        let place = Rc::new(Place::default());
        (Self { source, place: place.clone(), entities: xml.then(Entities::default) }, place)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        let bytes = &buffer[..length];
        let advance = |bytes: &[u8]| {
            self.place.lines.set(self.place.lines.get() + memchr_iter(b'\n', bytes).count() as u64);
        };
        let mut grown = 0;
        if let Some(entities) = &mut self.entities {
            grown = entities.expansion(bytes).map_err(|at| {
                advance(&bytes[..at]);
                let expected = "entities that do not expand to much more than the file".to_owned();
                io::Error::other(Excess { expected, found: "entities within entities, or a very long one" })
            })?;
        }
        let since = self.place.since.get() + length as u64 + grown;
        self.place.since.set(since);
        if since > LONGEST as u64 {
            let expected = format!("a statement of at most {LONGEST_IN_WORDS}");
            return Err(io::Error::other(Excess { expected, found: "more" }));
        }
        advance(bytes);
        Ok(length)
    }
}
