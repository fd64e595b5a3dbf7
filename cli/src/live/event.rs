//! One thing that was said about a fact.

use serde::Serialize;
use std::sync::Arc;

/// A fact by names: subject, relation, object.
pub type Fact = [Arc<str>; 3];

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is a fact.
    Add,
    /// It is no longer a fact.
    Remove,
    /// A reviewer finds it true.
    Accept,
    /// A reviewer finds it false.
    Reject,
    /// A reviewer cannot tell.
    Unsure,
    /// A reviewer takes their verdict back.
    Undo,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Add, Kind::Remove, Kind::Accept, Kind::Reject, Kind::Unsure, Kind::Undo];

    /// Its name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Unsure => "unsure",
            Self::Undo => "undo",
        }
    }

    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What was said about a fact, before it has its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub kind: Kind,
    pub fact: Fact,
    pub confidence: Option<f64>,
    pub source: Option<String>,
    pub note: Option<String>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number: 1, 2, 3 and so on.
    pub seq: i64,
    pub said: Said,
    /// Who said it.
    pub who: Arc<str>,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
}

/// An entry as it is sent and exported.
#[derive(Serialize)]
pub struct Sent<'a> {
    pub seq: i64,
    pub kind: Kind,
    pub subject: &'a str,
    pub relation: &'a str,
    pub object: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
    pub who: &'a str,
    pub time: String,
}

impl Event {
    /// As it is sent.
    pub fn sent(&self) -> Sent<'_> {
        let Said { kind, fact: [subject, relation, object], confidence, source, note } = &self.said;
        Sent {
            seq: self.seq,
            kind: *kind,
            subject,
            relation,
            object,
            confidence: *confidence,
            source: source.as_deref(),
            note: note.as_deref(),
            who: &self.who,
            time: utc(self.time_ms),
        }
    }
}

/// A time as `2026-11-19T02:05:00Z` (ISO 8601), by the civil calendar.
pub fn utc(time_ms: i64) -> String {
    let seconds = time_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Howard Hinnant's `civil_from_days`: years begin in March, eras have 400 years.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + 400 * era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(1000 * seconds), text);
        }
    }
}
