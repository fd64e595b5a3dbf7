//! Reads a file of lines on all cores, with ids that do not depend on the threads.
//!
//! The file is cut into blocks of whole lines. A thread takes the next block, numbers the names of that block among
//! themselves, waits for its turn, and then gives each *distinct* name of the block its global id. The shared table is
//! therefore consulted once per name and block instead of once per mention, and ids follow first appearance as if
//! one thread had read the file from top to bottom.

use super::bounded::LONGEST;
use crate::vocabulary::{Vocabulary, hash_name};
use hashbrown::HashTable;
use memchr::memrchr;
use std::io::{self, Read};
use std::sync::{Condvar, Mutex, PoisonError};

/// Large enough that names repeat inside a block, small enough to stay near the caches.
const BLOCK: usize = 4 << 20;

/// What is made of blocks: each is parsed by any thread, and what came of it is taken in the order of the blocks.
pub(super) trait InTurn: Send {
    /// What a block is parsed with.
    type How: Sync;
    /// What a block holds.
    type Parsed<'b>;

    /// Parses a block.
    fn parse<'b>(how: &Self::How, block: &'b [u8]) -> Self::Parsed<'b>;

    /// Takes the next block, and the error that ended the file after it if one did; `false` ends the reading.
    fn take(&mut self, parsed: Self::Parsed<'_>, trouble: Option<io::Error>) -> bool;
}

/// Passes all `blocks` through `reader`, on all threads.
pub(super) fn read_all<R: InTurn>(blocks: Blocks, how: &R::How, reader: R) -> R {
    let blocks = Mutex::new(blocks);
    let merge = Mutex::new(Merge { turn: 0, failed: false, reader });
    let turned = Condvar::new();
    std::thread::scope(|scope| {
        for _ in 1..rayon::current_num_threads() {
            // If no more threads can be started, fewer do the same work.
            let work = || work(&blocks, how, &merge, &turned);
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work(&blocks, how, &merge, &turned);
    });
    merge.into_inner().unwrap_or_else(PoisonError::into_inner).reader
}

/// The shared result, to which threads add their blocks in order.
struct Merge<R> {
    turn: u64,
    failed: bool,
    reader: R,
}

fn work<R: InTurn>(blocks: &Mutex<Blocks>, how: &R::How, merge: &Mutex<Merge<R>>, turned: &Condvar) {
    loop {
        let taken = blocks.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((number, block, trouble)) = taken else { return };
        let parsed = R::parse(how, &block);
        let mut merge = merge.lock().unwrap_or_else(PoisonError::into_inner);
        while merge.turn != number {
            merge = turned.wait(merge).unwrap_or_else(PoisonError::into_inner);
        }
        if !merge.failed {
            merge.failed = !merge.reader.take(parsed, trouble);
        }
        merge.turn += 1;
        let failed = merge.failed;
        drop(merge);
        turned.notify_all();
        if failed {
            blocks.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        }
    }
}

/// The file, cut into blocks that end at the end of a line.
pub(super) struct Blocks {
    pub(super) source: Box<dyn Read + Send>,
    pub(super) rest: Vec<u8>,
    next: u64,
    ended: bool,
    /// The first block, after the check for a byte order mark and a header.
    pub(super) looked_at: Option<Block>,
}

/// A block with its number, and the error that ended the file if one did.
pub(super) type Block = (u64, Vec<u8>, Option<io::Error>);

impl Blocks {
    pub(super) fn of(source: Box<dyn Read + Send>) -> Self {
        Self { source, rest: Vec::new(), next: 0, ended: false, looked_at: None }
    }

    /// The next block. Text read before an I/O error is still parsed, so that a bad line in it is reported first.
    pub(super) fn take(&mut self) -> Option<Block> {
        if self.looked_at.is_some() {
            return self.looked_at.take();
        }
        if self.ended {
            return None;
        }
        let mut block = std::mem::take(&mut self.rest);
        let mut trouble = None;
        loop {
            let had = block.len();
            match (&mut self.source).take(BLOCK as u64).read_to_end(&mut block) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => {
                    self.ended = true;
                    trouble = Some(error);
                }
            }
            if self.ended {
                break;
            }
            if let Some(newline) = memrchr(b'\n', &block[had..]) {
                self.rest = block[had + newline + 1..].to_vec();
                block.truncate(had + newline + 1);
                break;
            }
            if block.len() > LONGEST {
                // All of it is a single line, which will be refused for its length.
                self.ended = true;
                break;
            }
        }
        let number = self.next;
        self.next += 1;
        Some((number, block, trouble))
    }
}

/// A name of a block, with its hash.
pub(super) struct LocalName<'b> {
    pub(super) hash: u64,
    pub(super) name: &'b str,
}

/// The names of one block, numbered among themselves by first appearance.
#[derive(Default)]
pub(super) struct LocalNames<'b> {
    table: HashTable<u32>,
    pub(super) names: Vec<LocalName<'b>>,
    last: u32,
}

impl<'b> LocalNames<'b> {
    pub(super) fn number(&mut self, name: &'b str) -> u32 {
        // Files are often grouped by head or by relation, so the same name often follows itself.
        if self.names.get(self.last as usize).is_some_and(|last| last.name == name) {
            return self.last;
        }
        let hash = hash_name(name);
        let names = &self.names;
        let same = |&id: &u32| names[id as usize].hash == hash && names[id as usize].name == name;
        self.last = match self.table.entry(hash, same, |&id| names[id as usize].hash) {
            hashbrown::hash_table::Entry::Occupied(known) => *known.get(),
            hashbrown::hash_table::Entry::Vacant(place) => {
                let id = names.len() as u32;
                place.insert(id);
                self.names.push(LocalName { hash, name });
                id
            }
        };
        self.last
    }

    pub(super) fn global_ids(&self, vocabulary: &mut Vocabulary) -> Vec<u32> {
        self.names.iter().map(|local| vocabulary.intern_hashed(local.hash, local.name)).collect()
    }
}
