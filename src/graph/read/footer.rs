//! Checks that the footer of a Parquet file claims no more than it contains.
//!
//! The decoder trusts the length of a list and steps through billions of elements that the file does not contain. The
//! footer is therefore checked first. It uses Thrift's compact protocol, in which every element takes at least one
//! byte (the decoder ignores this for booleans).

/// The maximum nesting of structures; Parquet's own need far less.
const DEPTH: usize = 64;

/// A claimed length that the footer cannot contain.
pub(super) struct Claims(pub u64);

/// Checks a footer. A footer that ends too early is left to the decoder, which reports where.
///
/// # Errors
/// If a list or a string claims to be longer than the rest of the footer.
pub(super) fn check(footer: &[u8]) -> Result<(), Claims> {
    match Compact(footer).structure(DEPTH) {
        Err(Stop::Claims(length)) => Err(Claims(length)),
        Ok(()) | Err(Stop::End) => Ok(()),
    }
}

enum Stop {
    /// There are no more bytes, or they are not valid.
    End,
    /// A length exceeds the remaining bytes.
    Claims(u64),
}

/// The rest of a footer.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let (&byte, rest) = self.0.split_first().ok_or(Stop::End)?;
        self.0 = rest;
        Ok(byte)
    }

    /// A variable-length number. One of more than ten bytes is invalid, but the decoder reads on, so the check does too.
    fn number(&mut self) -> Result<u64, Stop> {
        let (mut number, mut shift) = (0, 0u32);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift = shift.wrapping_add(7);
        }
    }

    /// Checks that `count` elements of at least one byte each can still follow.
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

    /// Skips the field number, if it is not part of the field's first byte.
    fn field(&mut self, first: u8) -> Result<(), Stop> {
        if first >> 4 == 0 { self.number().map(drop) } else { Ok(()) }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Stop> {
        match kind {
            // The value of a boolean field is part of the field's first byte. In a list, a boolean has a byte of its
            // own, which the decoder does not read. The check has to follow the decoder's interpretation.
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
        // Field 1, a list of three numbers, then the end; the same list claiming to hold 2^31 - 1 booleans; a string
        // of 200 bytes.
        assert!(check(&[0x19, 0x35, 2, 4, 6, 0]).is_ok());
        let flags = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert_eq!(check(&flags).map_err(|claims| claims.0), Err(i32::MAX as u64));
        assert_eq!(check(&[0x18, 0xc8, 0x01, b'a']).map_err(|claims| claims.0), Err(200));
        // The same flags after a number of thirty bytes.
        let long = [&[0x15][..], &[0x81; 29], &[0x01], &flags].concat();
        assert_eq!(check(&long).map_err(|claims| claims.0), Err(i32::MAX as u64));
        // Footers that end too early or are invalid are not rejected here.
        assert!(check(&[]).is_ok() && check(&[0x19]).is_ok() && check(&[0x1f, 0]).is_ok());
    }

    #[test]
    fn structures_without_end_are_left_alone() {
        assert!(check(&[0x1c; 100_000]).is_ok());
    }
}
