//! One error for every setting with an invalid value.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

/// A value that a setting may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: expected {expected}, found {found}")]
pub struct WrongValue {
    /// The setting.
    pub key: String,
    /// What it may be.
    pub expected: String,
    /// What it is.
    pub found: String,
}

impl WrongValue {
    /// The same error for a setting inside `group`.
    pub fn in_group(self, group: &str) -> Self {
        Self { key: format!("{group}.{}", self.key), ..self }
    }
}

/// Refuses the value `found` of `key` unless `holds`; the message says what was `expected`.
///
/// # Errors
/// If `holds` is false.
pub fn expect(holds: bool, key: &str, expected: &str, found: impl Display) -> Result<(), WrongValue> {
    if holds {
        return Ok(());
    }
    Err(WrongValue { key: key.to_owned(), expected: expected.to_owned(), found: found.to_string() })
}

/// A whole number in a range. A range up to the largest number there is has no upper end.
///
/// # Errors
/// If the number is outside it.
pub fn whole<T>(key: &str, value: T, range: impl RangeBounds<T>) -> Result<(), WrongValue>
where
    T: PartialOrd + Display + Copy + TryInto<u64>,
{
    let largest = |bound: T| bound.try_into().is_ok_and(|bound: u64| bound >= u64::from(u32::MAX));
    in_range("a whole number", key, value, &range, largest)
}

/// A finite number in a range. A range up to the largest number there is has no upper end.
///
/// # Errors
/// If the number is outside it, or not finite.
pub fn number<T>(key: &str, value: T, range: impl RangeBounds<T>) -> Result<(), WrongValue>
where
    T: PartialOrd + Display + Copy + Into<f64>,
{
    let largest = |bound: T| bound.into() >= f64::from(f32::MAX);
    let finite: f64 = value.into();
    if !finite.is_finite() {
        return expect(false, key, &described("a finite number", &range, largest), value);
    }
    in_range("a number", key, value, &range, largest)
}

fn in_range<T: PartialOrd + Display + Copy>(
    kind: &str,
    key: &str,
    value: T,
    range: &impl RangeBounds<T>,
    largest: impl Fn(T) -> bool,
) -> Result<(), WrongValue> {
    expect(range.contains(&value), key, &described(kind, range, largest), value)
}

/// The range in words.
fn described<T: Display + Copy>(
    kind: &str,
    range: &impl RangeBounds<T>,
    largest: impl Fn(T) -> bool,
) -> String {
    let upper = match range.end_bound() {
        Bound::Included(&end) if !largest(end) => Some(end.to_string()),
        Bound::Excluded(&end) => Some(format!("below {end}")),
        _ => None,
    };
    match (range.start_bound(), upper) {
        (Bound::Included(start), Some(end)) => format!("{kind} from {start} to {end}"),
        (Bound::Included(start), None) => format!("{kind}, {start} or more"),
        (Bound::Excluded(start), Some(end)) => format!("{kind} above {start}, up to {end}"),
        (Bound::Excluded(start), None) => format!("{kind} above {start}"),
        (Bound::Unbounded, Some(end)) => format!("{kind} up to {end}"),
        (Bound::Unbounded, None) => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(result: Result<(), WrongValue>, message: &str) {
        assert_eq!(result.unwrap_err().to_string(), message);
    }

    const ABOVE_0: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Unbounded);

    #[test]
    fn what_is_in_its_range_passes() {
        for fine in [
            whole("a", 1usize, 1..=16),
            whole("a", 16usize, 1..=16),
            whole("a", usize::MAX, 1..),
            number("a", 0.99f32, 0.0..=0.99),
            number("a", 0.0, 0.0..1.0),
            number("a", f64::MIN_POSITIVE, ABOVE_0),
            expect(true, "a", "anything", "it"),
        ] {
            assert_eq!(fine, Ok(()));
        }
    }

    #[test]
    fn what_is_not_is_refused_in_the_same_words() {
        refused(whole("layers", 0usize, 1..=16), "`layers`: expected a whole number from 1 to 16, found 0");
        refused(whole("layers", 17u64, 1..=16), "`layers`: expected a whole number from 1 to 16, found 17");
        refused(whole("top", 0usize, 1..), "`top`: expected a whole number, 1 or more, found 0");
        refused(whole("top", 0usize, 1..=usize::MAX), "`top`: expected a whole number, 1 or more, found 0");
        refused(number("clip", -0.5f32, 0.0..=f32::MAX), "`clip`: expected a number, 0 or more, found -0.5");
        refused(
            number("share", 0.1f32 + 1.0, 0.0..=1.0),
            "`share`: expected a number from 0 to 1, found 1.1",
        );
        refused(number("share", 1.0, 0.0..1.0), "`share`: expected a number from 0 to below 1, found 1");
        refused(number("rate", 0.0, ABOVE_0), "`rate`: expected a number above 0, found 0");
        refused(
            number("rate", f64::INFINITY, ABOVE_0),
            "`rate`: expected a finite number above 0, found inf",
        );
        refused(number("rate", f64::NAN, ..=1.0), "`rate`: expected a finite number up to 1, found NaN");
    }

    #[test]
    fn a_group_comes_before_the_key() {
        let wrong = whole("layers", 0usize, 1..=16).unwrap_err().in_group("walk");
        assert_eq!(wrong.to_string(), "`walk.layers`: expected a whole number from 1 to 16, found 0");
    }
}
