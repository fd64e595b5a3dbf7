//! When a fact was stated or holds: a date or a number, as the data give it.
//!
//! Texts are kept as they are; this module says which of two is earlier.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A date (`2015`, `2015-06`, `2015-06-30`, `2015-06-30T12:00:00Z`) or any other number.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// A number without a unit. Compared with a date, it is a year.
    Number(f64),
    /// A date, in days since 1970-01-01.
    Date(f64),
}

impl Time {
    /// The time that `text` gives, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.parse::<f64>() {
            Ok(number) => number.is_finite().then_some(Time::Number(number)),
            Err(_) => date(text).map(Time::Date),
        }
    }

    /// The time in days; a number is the first day of that year. This keeps the order of numbers, so it is an order of
    /// dates and numbers together.
    fn days(self) -> f64 {
        match self {
            Time::Date(days) => days,
            Time::Number(year) => {
                let whole = year.floor().clamp(-1e9, 1e9);
                let first = days_to(whole as i64, 1, 1) as f64;
                // Beyond the clamp and within a year the fraction keeps the order.
                first + (year - whole) * 365.0
            }
        }
    }
}

impl Time {
    /// The day that it is part of, in days since 1970-01-01; a number stands for the first day of that year, so that equal
    /// numbers are of one day.
    pub fn day(self) -> i64 {
        self.days().floor() as i64
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
            .ok_or_else(|| format!("expected a date such as 2023-01-01, or a number; found {text}"))
    }
}

/// The day of a date; what the data give may be more exact.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Time::Number(number) => number.fmt(f),
            Time::Date(days) => {
                let (year, month, day) = day_of(days.floor() as i64);
                write!(f, "{year:04}-{month:02}-{day:02}")
            }
        }
    }
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Time::Number(one), Time::Number(other)) => one.total_cmp(other),
            (one, other) => one.days().total_cmp(&other.days()),
        }
    }
}

/// `YYYY-MM`, `YYYY-MM-DD` or the latter with a time of day, in days since 1970-01-01. Slashes are as good as dashes.
fn date(text: &str) -> Option<f64> {
    let (day, hour) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let parts: Vec<&str> = day.split(['-', '/']).collect();
    let number = |part: &str, most: u32| {
        let digits = !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u32>().ok().filter(|&number| digits && (1..=most).contains(&number))
    };
    let (year, month, day) = match parts[..] {
        [year, month] => (year, number(month, 12)?, 1),
        [year, month, day] => (year, number(month, 12)?, number(day, 31)?),
        _ => return None,
    };
    if year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let days = days_to(year.parse().ok()?, month, day) as f64;
    Some(days + hour.map_or(Some(0.0), fraction_of_day)?)
}

/// `12:30`, `12:30:59.5`, each with `Z` or `+01:00`, as a fraction of a day in UTC.
fn fraction_of_day(text: &str) -> Option<f64> {
    let seconds = |text: &str| -> Option<f64> {
        let parts: Vec<f64> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let fits = parts.iter().zip([24.0, 59.0, 60.0]).all(|(part, most)| (0.0..=most).contains(part));
        (fits && (1..=3).contains(&parts.len()))
            .then(|| parts.iter().zip([3600.0, 60.0, 1.0]).map(|(part, unit)| part * unit).sum())
    };
    let text = text.trim_end_matches(['Z', 'z']).trim_end();
    let (clock, offset) = match text.rfind(['+', '-']) {
        Some(at) => {
            let sign = if text.as_bytes()[at] == b'+' { 1.0 } else { -1.0 };
            (&text[..at], sign * seconds(&text[at + 1..])?)
        }
        None => (text, 0.0),
    };
    Some((seconds(clock)? - offset) / 86_400.0)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that the leap day is
/// their last: the days before a month then follow a straight line.
fn days_to(year: i64, month: u32, day: u32) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// The date of this many days from 1970-01-01, the reverse of [`days_to`].
fn day_of(days: i64) -> (i64, u32, u32) {
    // A guess that is not too late: years have at most 366 days, and before 1970 at least 365.
    let mut year = 1970 + days.div_euclid(366).min(days.div_euclid(365)) - 1;
    while days_to(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (2..=12).rev().find(|&month| days_to(year, month, 1) <= days).unwrap_or(1);
    (year, month, (days - days_to(year, month, 1)) as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_reads_as_it_was_written() {
        for text in ["1970-01-01", "2000-02-29", "2023-12-31", "1815-12-10", "2100-03-01", "0004-02-29"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!("2023-05-01T23:59".parse::<Time>().unwrap().to_string(), "2023-05-01");
        let days = |text: &str| text.parse::<Time>().unwrap().day();
        assert_eq!(days("2023-05-01T23:59"), days("2023-05-01"));
        assert_eq!((days("2023"), days("17") == days("17.0")), (days("2023-01-01"), true));
        assert!("soon".parse::<Time>().unwrap_err().contains("a date such as 2023-01-01"));
        assert_eq!("2014.5".parse::<Time>().unwrap().to_string(), "2014.5");
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = |text: &str| match Time::parse(text) {
            Some(Time::Date(days)) => days,
            other => panic!("{text}: {other:?}"),
        };
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("1970-01", 0.0),
            ("2000-03-01", 11_017.0),
            ("2024/02/29", 19_782.0),
            ("1815-12-10", -56_270.0),
            ("1970-01-02T12:00:00Z", 1.5),
            ("1970-01-01 06:00", 0.25),
            ("1970-01-01T06:00:00+06:00", 0.0),
        ] {
            assert_eq!(days(text), expected, "{text}");
        }
    }

    #[test]
    fn earlier_is_less_for_dates_numbers_and_both() {
        let ordered = ["1814.5", "1815-12-10", "1970-01-01T06:00", "1970-06", "1971", "2015-06-30"];
        let times: Vec<Time> = ordered.iter().map(|text| Time::parse(text).unwrap()).collect();
        assert!(times.is_sorted() && times.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(Time::parse("17").unwrap() < Time::parse("200").unwrap());
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["", "yesterday", "2015-13", "2015-06-32", "15-06-30", "2015-06-30T25:00", "NaN", "1-2-3-4"]
        {
            assert!(Time::parse(text).is_none(), "{text}");
        }
    }
}
