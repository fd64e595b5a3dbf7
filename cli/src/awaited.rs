//! Stdin for a job that can be interrupted while it waits for the next line.
//!
//! A thread of its own reads; the job looks every moment whether it should stop. A read that is under way cannot be called
//! off, so the thread stays behind until the process ends.

use ruleguider::progress::Progress;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How long an interruption may go unnoticed.
const MOMENT: Duration = Duration::from_millis(50);

/// What comes in from elsewhere, until it ends or the user has had enough.
pub struct Awaited<'a> {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
    progress: &'a dyn Progress,
}

impl<'a> Awaited<'a> {
    /// Stdin; for one who interrupts it is at its end.
    pub fn stdin(progress: &'a dyn Progress) -> Self {
        let (send, pieces) = sync_channel(4);
        let read = move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut piece = vec![0; 1 << 16];
                let read = stdin.read(&mut piece).map(|length| {
                    piece.truncate(length);
                    piece
                });
                let ended = !read.as_ref().is_ok_and(|piece| !piece.is_empty());
                if send.send(read).is_err() || ended {
                    return;
                }
            }
        };
        // Where no thread is to be had the sender is dropped with it, and stdin is at its end.
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
