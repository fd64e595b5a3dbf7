//! Lists in request bodies that are bounded while they are parsed.
//!
//! A body of some megabytes can hold hundreds of thousands of tiny items, which take several times its size in memory.
//! So items beyond the limit are counted, not kept.

use super::problem::Problem;
use axum::http::StatusCode;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::fmt::Formatter;
use std::marker::PhantomData;

/// A list of which at most `MOST` items are kept.
pub struct AtMost<T, const MOST: usize> {
    kept: Vec<T>,
    /// How many more there were.
    more: usize,
}

impl<T, const MOST: usize> AtMost<T, MOST> {
    /// The items.
    ///
    /// # Errors
    /// If there are more than `MOST` of these `things`.
    pub fn all(self, things: &str) -> Result<Vec<T>, Problem> {
        if self.more > 0 {
            let detail = format!("expected at most {MOST} {things}; send them in several requests");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail));
        }
        Ok(self.kept)
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

struct Items<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
    type Value = AtMost<T, MOST>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let (mut kept, mut more) = (Vec::new(), 0);
        while kept.len() < MOST {
            match items.next_element()? {
                Some(item) => kept.push(item),
                None => return Ok(AtMost { kept, more }),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        Ok(AtMost { kept, more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_counted_and_not_kept() {
        let list = |text: &str| serde_json::from_str::<AtMost<u8, 2>>(text);
        assert_eq!(list("[1, 2]").unwrap().all("numbers").unwrap(), [1, 2]);
        let long = list(r#"[1, 2, "any", {"thing": 4}]"#).unwrap();
        assert_eq!((long.kept.len(), long.more), (2, 2));
        assert!(long.all("numbers").unwrap_err().detail().contains("at most 2 numbers"));
        assert!(list("[1, x]").is_err() && list("3").is_err());
    }
}
