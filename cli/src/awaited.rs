//! Stdin, or a pipe, for a job that can be interrupted while it waits for the next line.
//!
//! A separate thread reads, and the job checks at short intervals whether it should stop. A blocking read cannot be
//! cancelled, so the thread stays until the process ends.

use ruleguider::progress::Progress;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How long an interruption may go unnoticed.
const MOMENT: Duration = Duration::from_millis(50);

/// Input from another process, until it ends or the user interrupts.
pub struct Awaited<'a> {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
    progress: &'a dyn Progress,
}

impl<'a> Awaited<'a> {
    /// Stdin, which reads as ended once the user interrupts.
    pub fn stdin(progress: &'a dyn Progress) -> Self {
        Self::opened(|| Ok(io::stdin()), progress)
    }

    /// What comes through the pipe at `path`. Opening it already waits for someone who writes.
    pub fn pipe(path: PathBuf, progress: &'a dyn Progress) -> Self {
        Self::opened(move || File::open(path), progress)
    }

    fn opened<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        progress: &'a dyn Progress,
    ) -> Self {
        let (send, pieces) = sync_channel(4);
        let read = move || {
            let mut input = match open() {
                Ok(input) => input,
                Err(error) => return drop(send.send(Err(error))),
            };
            loop {
                let mut piece = vec![0; 1 << 16];
                let read = input.read(&mut piece).map(|length| {
                    piece.truncate(length);
                    piece
                });
                let ended = !read.as_ref().is_ok_and(|piece| !piece.is_empty());
                if send.send(read).is_err() || ended {
                    return;
                }
            }
        };
        // If no thread can be started, the sender is dropped with the closure, and the input reads as ended.
        let _ = std::thread::Builder::new().spawn(read);
        Self { pieces, piece: Vec::new(), taken: 0, progress }
    }
}

impl Read for Awaited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() {
            match self.pieces.recv_timeout(MOMENT) {
                Ok(piece) => (self.piece, self.taken) = (piece?, 0),
                Err(RecvTimeoutError::Timeout) if !self.progress.interrupted() => continue,
                Err(_) => return Ok(0),
            }
            if self.piece.is_empty() {
                return Ok(0);
            }
        }
        let length = buffer.len().min(self.piece.len() - self.taken);
        buffer[..length].copy_from_slice(&self.piece[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }
}
