//! FNV-1a: a small hash of bytes that is the same on every machine and in every version.
//!
//! For naming streams, files and trainings. Not for hash tables, and not safe against an attacker. Every module may use
//! this module; it knows none of them.

/// A hash under construction.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// The hash of no bytes.
    pub fn new() -> Self {
        Fnv::default()
    }

    /// Continues with these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of all bytes so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The hash of some bytes.
pub fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.add(bytes);
    hash.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_hash_however_the_bytes_come() {
        // Test vectors published by the authors.
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv(text.as_bytes()), hash, "{text}");
        }
        let mut parts = Fnv::new();
        parts.add(b"foo");
        parts.add(b"bar");
        assert_eq!(parts.value(), fnv(b"foobar"));
    }
}
