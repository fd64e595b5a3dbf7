//! Checks the footer and the page headers of a Parquet file before the decoder reads them.
//!
//! The decoder trusts the length of a list and steps through billions of elements that the file does not contain, and
//! it reads a field by its number, whatever type the file declares for it. Both are therefore checked first: a list
//! must fit into what is left, and a field must have the type that the format gives to its number. Footer and headers
//! use Thrift's compact protocol, in which every element takes at least one byte (the decoder ignores this for
//! booleans).

use super::layout::Kind;
use std::fmt;
use std::io::Read;

/// The maximum nesting of structures. Beyond half of it the decoder gives up.
const DEPTH: usize = 128;

/// What is wrong with a structure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A list or a text claims more elements or bytes than are left.
    Claims(u64),
    /// A size is above what is read.
    Large { size: i32, most: i32 },
    /// The field of this number has another type than the format gives it.
    Mistyped(i64),
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Claims(count) => write!(to, "declares {count} elements that it does not have"),
            Self::Large { size, most } => write!(to, "declares {size} bytes; at most {most} are read"),
            Self::Mistyped(id) => write!(to, "declares a wrong type for its field {id}"),
        }
    }
}

/// Checks a structure whose fields are `layout`, in the next `left` bytes of `source`. One that ends too early or is
/// otherwise invalid is left to the decoder, which reports where.
///
/// # Errors
/// If it claims to be longer than `left`, or declares a field to be of another type than in `layout`.
pub(super) fn check(source: impl Read, left: u64, layout: &[Kind]) -> Result<(), Fault> {
    match (Compact { source, left }).structure(layout, DEPTH) {
        Err(Stop::Fault(fault)) => Err(fault),
        Ok(()) | Err(Stop::End) => Ok(()),
    }
}

/// Signed numbers are written with the sign as the last bit.
fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

enum Stop {
    /// There are no more bytes, or they are not valid.
    End,
    Fault(Fault),
}

/// The rest of a structure.
struct Compact<R> {
    source: R,
    left: u64,
}

impl<R: Read> Compact<R> {
    fn byte(&mut self) -> Result<u8, Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::End)?;
        let mut byte = [0];
        self.source.read_exact(&mut byte).map_err(|_| Stop::End)?;
        Ok(byte[0])
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
    fn at_hand(&self, count: u64) -> Result<(), Stop> {
        if count <= self.left { Ok(()) } else { Err(Stop::Fault(Fault::Claims(count))) }
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        self.left = self.left.checked_sub(bytes).ok_or(Stop::End)?;
        let skipped = std::io::copy(&mut self.source.by_ref().take(bytes), &mut std::io::sink());
        if skipped.is_ok_and(|skipped| skipped == bytes) { Ok(()) } else { Err(Stop::End) }
    }

    fn structure(&mut self, layout: &[Kind], depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::End)?;
        let mut last = 0;
        loop {
            let field = self.byte()?;
            let wire = field & 0x0f;
            if wire == 0 {
                return Ok(());
            }
            let id = if field >> 4 == 0 { self.id()? } else { last + i64::from(field >> 4) };
            let known =
                usize::try_from(id - 1).ok().and_then(|place| layout.get(place)).unwrap_or(&Kind::Any);
            if !known.is(wire) {
                return Err(Stop::Fault(Fault::Mistyped(id)));
            }
            self.value(wire, known, depth)?;
            last = id;
        }
    }

    /// The number of a field that is not given by its distance from the last; the decoder keeps sixteen bits of it.
    fn id(&mut self) -> Result<i64, Stop> {
        Ok(i64::from(zigzag(self.number()?) as i16))
    }

    /// A value that the file declares to be `wire` and the format to be `known`.
    fn value(&mut self, wire: u8, known: &Kind, depth: usize) -> Result<(), Stop> {
        match wire {
            // The value of a boolean field is part of the field's first byte. In a list, a boolean has a byte of its
            // own, which the decoder does not read. The check has to follow the decoder's interpretation.
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => match (known, zigzag(self.number()?) as i32) {
                // The decoder keeps 32 bits of a size and rejects negative ones.
                (&Kind::AtMost(most), size) if size > most => Err(Stop::Fault(Fault::Large { size, most })),
                (Kind::Count, count) => self.at_hand(u64::try_from(count).unwrap_or(0)),
                _ => Ok(()),
            },
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.at_hand(length)?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                let element = if let Kind::List(element) = known { element } else { &Kind::Any };
                self.values(count, &[head & 0x0f], element, depth)
            }
            11 => match self.number()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    self.values(count, &[kinds >> 4, kinds & 0x0f], &Kind::Any, depth)
                }
            },
            12 => self.structure(if let Kind::Struct(layout) = known { layout } else { &[] }, depth),
            13 => self.skip(16),
            _ => Err(Stop::End),
        }
    }

    fn values(&mut self, count: u64, wires: &[u8], known: &Kind, depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::End)?;
        self.at_hand(count)?;
        for _ in 0..count {
            for &wire in wires {
                // The decoder rejects a list whose elements have another type than the format gives them.
                if !known.is(wire) {
                    return Err(Stop::End);
                }
                self.value(wire, known, depth)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{FILE, PAGE};
    use super::*;

    fn checked(bytes: &[u8], layout: &[Kind]) -> Result<(), Fault> {
        check(bytes, bytes.len() as u64, layout)
    }

    #[test]
    fn a_list_may_not_claim_more_than_there_is() {
        // Field 1, a list of three numbers, then the end; the same list claiming to hold 2^31 - 1 booleans; a string
        // of 200 bytes.
        assert_eq!(checked(&[0x19, 0x35, 2, 4, 6, 0], &[]), Ok(()));
        let flags = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert_eq!(checked(&flags, &[]), Err(Fault::Claims(i32::MAX as u64)));
        assert_eq!(checked(&[0x18, 0xc8, 0x01, b'a'], &[]), Err(Fault::Claims(200)));
        // The same flags after a number of thirty bytes.
        let long = [&[0x15][..], &[0x81; 29], &[0x01], &flags].concat();
        assert_eq!(checked(&long, &[]), Err(Fault::Claims(i32::MAX as u64)));
        // Structures that end too early or are invalid are not rejected here.
        for broken in [&[][..], &[0x19], &[0x1f, 0]] {
            assert_eq!(checked(broken, &[]), Ok(()));
        }
    }

    #[test]
    fn a_field_has_the_type_of_its_number() {
        // The version of a file is a number: of any width, never a text, whether its number is a distance or written out.
        for (first, expected) in [
            (&[0x15][..], Ok(())),
            (&[0x16], Ok(())),
            (&[0x18], Err(Fault::Mistyped(1))),
            (&[0x08, 2], Err(Fault::Mistyped(1))),
        ] {
            assert_eq!(checked(&[first, &[0, 0]].concat(), FILE), expected, "{first:?}");
        }
        // The second field is a list of structures, and in the first of these the fourth field is a text.
        assert_eq!(checked(&[0x29, 0x1c, 0x48, 1, b'a', 0, 0], FILE), Ok(()));
        assert_eq!(checked(&[0x29, 0x1c, 0x45, 1, 0, 0], FILE), Err(Fault::Mistyped(4)));
        // Fields that the format does not have yet may be anything.
        assert_eq!(checked(&[0xf8, 1, b'a', 0xf5, 2, 0], FILE), Ok(()));
    }

    #[test]
    fn a_page_is_not_larger_than_what_is_read() {
        // The second field: one byte, 2^28 bytes, one more, less than none.
        assert_eq!(checked(&[0x25, 0x02, 0], PAGE), Ok(()));
        assert_eq!(checked(&[0x25, 0x80, 0x80, 0x80, 0x80, 0x02, 0], PAGE), Ok(()));
        let large = Fault::Large { size: (1 << 28) + 1, most: 1 << 28 };
        assert_eq!(checked(&[0x25, 0x82, 0x80, 0x80, 0x80, 0x02, 0], PAGE), Err(large));
        assert_eq!(checked(&[0x25, 0x01, 0], PAGE), Ok(()));
        // A number of seven bytes, of which 32 bits are a large size.
        let cut = [0x25, 0x97, 0x97, 0x97, 0x97, 0x97, 0x97, 0x5e, 0];
        assert!(matches!(checked(&cut, PAGE), Err(Fault::Large { .. })));
    }

    #[test]
    fn an_element_has_no_more_children_than_follow() {
        // The schema with one element, whose fifth field says how many children it has: one, and 100 million.
        assert_eq!(checked(&[0x29, 0x1c, 0x55, 0x02, 0, 0], FILE), Ok(()));
        let many = [0x29, 0x1c, 0x55, 0x80, 0x84, 0xaf, 0x5f, 0, 0];
        assert_eq!(checked(&many, FILE), Err(Fault::Claims(100_000_000)));
    }

    #[test]
    fn structures_without_end_are_left_alone() {
        assert_eq!(checked(&[0x1c; 100_000], &[]), Ok(()));
    }
}
