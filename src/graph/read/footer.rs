//! Whether the footer of a Parquet file claims no more than it holds.
//!
//! The decoder takes a list's word for its length, and steps through billions of elements of which the file has none. So the
//! footer is gone through before: it is in Thrift's compact protocol, in which every element takes a byte at least
//! (the decoder forgets this of flags).

/// Structures within structures, at most; Parquet's own need far fewer.
const DEPTH: usize = 64;

/// What a footer does not hold.
pub(super) struct Claims(pub u64);

/// Goes through a footer. One that ends too early is left to the decoder, which says where.
///
/// # Errors
/// If a list or a text is said to be longer than what is left.
pub(super) fn check(footer: &[u8]) -> Result<(), Claims> {
    match Compact(footer).structure(DEPTH) {
        Err(Stop::Claims(length)) => Err(Claims(length)),
        Ok(()) | Err(Stop::End) => Ok(()),
    }
}

enum Stop {
    /// There are no more bytes, or what is there means nothing.
    End,
    /// More is claimed than there is.
    Claims(u64),
}

/// What is left of a footer.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let (&byte, rest) = self.0.split_first().ok_or(Stop::End)?;
        self.0 = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, Stop> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Stop::End)
    }

    /// So many things, each of a byte at least.
    fn at_hand(&self, count: u64) -> Result<usize, Stop> {
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() => Ok(count),
            _ => Err(Stop::Claims(count)),
        }
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Stop> {
        self.0 = self.0.get(bytes..).ok_or(Stop::End)?;
        Ok(())
    }

    fn structure(&mut self, depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::End)?;
        loop {
            let field = self.byte()?;
            if field & 0x0f == 0 {
                return Ok(());
            }
            self.field(field)?;
            self.value(field & 0x0f, depth)?;
        }
    }

    /// The number of a field, where it does not stand in its first byte.
    fn field(&mut self, first: u8) -> Result<(), Stop> {
        if first >> 4 == 0 { self.number().map(drop) } else { Ok(()) }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Stop> {
        match kind {
            // A flag stands in the byte of its field. In a list it has one of its own, which the decoder does not know; what it
            // makes of such a list is what has to be looked at.
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                let length = self.at_hand(length)?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                self.values(count, &[head & 0x0f], depth)
            }
            11 => match self.number()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    self.values(count, &[kinds >> 4, kinds & 0x0f], depth)
                }
            },
            12 => self.structure(depth),
            13 => self.skip(16),
            _ => Err(Stop::End),
        }
    }

    fn values(&mut self, count: u64, kinds: &[u8], depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::End)?;
        for _ in 0..self.at_hand(count)? {
            kinds.iter().try_for_each(|&kind| self.value(kind, depth))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_not_claim_more_than_there_is() {
        // Field 1, a list of three numbers, the end; the same list said to hold 2^31 - 1 flags; a text of 200 bytes.
        assert!(check(&[0x19, 0x35, 2, 4, 6, 0]).is_ok());
        let flags = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert_eq!(check(&flags).map_err(|claims| claims.0), Err(i32::MAX as u64));
        assert_eq!(check(&[0x18, 0xc8, 0x01, b'a']).map_err(|claims| claims.0), Err(200));
        // What ends too early or means nothing is not judged here.
        assert!(check(&[]).is_ok() && check(&[0x19]).is_ok() && check(&[0x1f, 0]).is_ok());
    }

    #[test]
    fn structures_without_end_are_left_alone() {
        assert!(check(&[0x1c; 100_000]).is_ok());
    }
}
