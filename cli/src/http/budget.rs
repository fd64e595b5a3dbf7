//! A budget of bytes that all connections share.
//!
//! The number of requests does not bound memory: a request body or a response may have megabytes, and stays in memory
//! while a client sends or reads it slowly. So every body and every response is charged to a [`Budget`] for as long as
//! it exists. A request that does not fit is told to come back.

use axum::body::Bytes;
use std::io::{self, Write};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that may be in memory at once.
pub struct Budget {
    left: Arc<Semaphore>,
    size: usize,
}

/// Bytes that are taken from a budget; given back when dropped.
pub struct Charge(OwnedSemaphorePermit);

impl Budget {
    /// A budget of `size` bytes.
    pub fn new(size: usize) -> Self {
        // A permit is a byte, and tokio counts the permits of one charge in 32 bits.
        let size = size.min(u32::MAX as usize);
        Self { left: Arc::new(Semaphore::new(size)), size }
    }

    /// How many bytes are taken.
    pub fn used(&self) -> usize {
        self.size - self.left.available_permits()
    }

    /// Takes `bytes`; `None` if fewer are left.
    pub fn try_take(&self, bytes: usize) -> Option<Charge> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.left).try_acquire_many_owned(bytes).ok().map(Charge)
    }

    /// Takes `bytes`, or all if the budget is smaller, once they are left.
    pub async fn take(&self, bytes: usize) -> Option<Charge> {
        let bytes = u32::try_from(bytes.min(self.size)).ok()?;
        Arc::clone(&self.left).acquire_many_owned(bytes).await.ok().map(Charge)
    }
}

impl Charge {
    /// Changes the charge to `bytes` of `budget`, from which it was taken; `None` if fewer are left.
    pub fn resized(mut self, bytes: usize, budget: &Budget) -> Option<Self> {
        let has = self.0.num_permits();
        if bytes > has {
            self.0.merge(budget.try_take(bytes - has)?.0);
        } else {
            drop(self.0.split(has - bytes));
        }
        Some(self)
    }

    /// `bytes`, which are charged until the last copy of them is dropped. That is when they are sent, since the
    /// connection holds them until then.
    pub fn on(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Charged { bytes: bytes.into_boxed_slice(), _charge: self })
    }
}

struct Charged {
    bytes: Box<[u8]>,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A buffer that refuses to hold more than `most` bytes.
pub struct Bounded<'a> {
    pub bytes: &'a mut Vec<u8>,
    pub most: usize,
}

impl Write for Bounded<'_> {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_charged_until_their_last_copy_is_dropped() {
        let budget = Budget::new(100);
        let charge = budget.try_take(60).unwrap();
        assert!(budget.try_take(41).is_none());
        let sent = charge.resized(3, &budget).unwrap().on(vec![1, 2, 3]);
        let copy = sent.slice(1..);
        drop(sent);
        assert_eq!((budget.used(), &copy[..]), (3, &[2, 3][..]));
        drop(copy);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_charge_grows_as_far_as_the_budget_goes() {
        let budget = Budget::new(100);
        let charge = budget.try_take(10).unwrap().resized(90, &budget).unwrap();
        assert_eq!(budget.used(), 90);
        assert!(charge.resized(101, &budget).is_none());
        assert_eq!(budget.used(), 0, "a charge that cannot grow is given back");
    }

    #[test]
    fn a_buffer_ends_where_it_is_told_to() {
        let mut bytes = Vec::new();
        let mut bounded = Bounded { bytes: &mut bytes, most: 5 };
        bounded.write_all(b"12345").unwrap();
        assert!(bounded.write_all(b"6").is_err());
        assert_eq!(bytes, b"12345");
    }
}
