//! All parts of one job.

use super::{Header, Part, ShardError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All parts of one job, in order.
pub struct Parts {
    parts: Vec<Part>,
}

impl Parts {
    /// Opens the parts at `paths`, given in any order.
    ///
    /// # Errors
    /// If a part is missing, given twice or unreadable, or if its job, seed, version or data differ from the others'.
    pub fn open(paths: &[PathBuf]) -> Result<Self, ShardError> {
        let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
        let mut first: Option<(Header, &Path)> = None;
        for path in paths {
            let part = Part::open(path)?;
            let (header, other) = first.get_or_insert_with(|| (part.header().clone(), path));
            same_work(part.header(), path, header, other)?;
            let shard = part.header().shard;
            if let Some(before) = parts.insert(shard.index(), part) {
                return Err(ShardError::Twice { path: path.clone(), other: before.path().to_owned(), shard });
            }
        }
        let Some((header, path)) = first else { return Err(ShardError::None) };
        if header.version != ruleguider_support::VERSION {
            return Err(ShardError::Version { path: path.to_owned(), made: header.version });
        }
        let count = header.shard.count();
        let missing: Vec<String> =
            (1..=count).filter(|index| !parts.contains_key(index)).map(|i| format!("{i}/{count}")).collect();
        if !missing.is_empty() {
            let several = missing.len() > 1;
            return Err(ShardError::Missing { count, missing: missing.join(", "), several });
        }
        Ok(Self { parts: parts.into_values().collect() })
    }

    /// What they were made from, according to the first of them.
    pub fn header(&self) -> &Header {
        self.parts[0].header()
    }

    /// The path of the first of them.
    pub fn path(&self) -> &Path {
        self.parts[0].path()
    }

    /// The parts.
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }
}

/// Checks that two parts belong to the same job.
fn same_work(here: &Header, path: &Path, there: &Header, other: &Path) -> Result<(), ShardError> {
    let differs = |what: &str, here: String, there: String| {
        let (path, other, what) = (path.to_owned(), other.to_owned(), what.to_owned());
        Err(ShardError::Differs { path, other, what, here, there })
    };
    let short = |sum: &str| sum.chars().take(12).collect::<String>();
    for (what, a, b) in [
        ("holds", here.kind.to_string(), there.kind.to_string()),
        ("was made by version", here.version.clone(), there.version.clone()),
        ("was made with seed", here.seed.to_string(), there.seed.to_string()),
        ("was made with number of parts =", here.shard.count().to_string(), there.shard.count().to_string()),
    ] {
        if a != b {
            return differs(what, a, b);
        }
    }
    if here.data != there.data {
        return differs("was made from data with checksum", short(&here.data), short(&there.data));
    }
    match difference(&here.settings, &there.settings, "") {
        Some((key, a, b)) => differs(&format!("was made with {key} ="), a, b),
        None => Ok(()),
    }
}

/// The first key in which two settings differ, with both values.
pub(crate) fn difference(here: &Value, there: &Value, key: &str) -> Option<(String, String, String)> {
    let (Value::Object(a), Value::Object(b)) = (here, there) else {
        return (here != there).then(|| (key.to_owned(), here.to_string(), there.to_string()));
    };
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.into_iter().find_map(|name| {
        let side = |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or(Value::Null);
        difference(&side(a), &side(b), &below(name))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Shard, ShardKind, write_part};
    use super::*;
    use serde_json::json;

    fn part(folder: &Path, name: &str, index: u64, change: impl FnOnce(&mut Header)) -> PathBuf {
        let path = folder.join(format!("{name}.shard"));
        let shard = Shard::new(index, 3).unwrap();
        let settings = json!({"options": {"top": 3}, "links": 7});
        let mut header = Header::new(ShardKind::Facts, shard, 1, "0123456789abcdef".to_owned(), &settings);
        change(&mut header);
        write_part(&path, &header, |out| out.row(&index)).unwrap();
        path
    }

    fn refusal(paths: &[PathBuf]) -> String {
        Parts::open(paths).err().expect("it is refused").to_string()
    }

    #[test]
    fn parts_come_in_their_order_whatever_the_order_they_are_given_in() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = [1, 2, 3].map(|index| part(folder.path(), &format!("p{index}"), index, |_| ()));
        let orders = [[&a, &b, &c], [&c, &a, &b], [&b, &c, &a]];
        for order in orders {
            let parts = Parts::open(&order.map(Clone::clone)).unwrap().into_parts();
            let rows = parts.into_iter().flat_map(Part::rows::<u32>).map(Result::unwrap);
            assert_eq!(rows.collect::<Vec<u32>>(), [1, 2, 3]);
        }
        assert!(refusal(&[]).contains("at least one part"));
        assert!(refusal(&[a.clone(), c.clone()]).starts_with("of 3 parts 2/3 is missing"));
        assert!(refusal(std::slice::from_ref(&b)).starts_with("of 3 parts 1/3, 3/3 are missing"));
        let again = part(folder.path(), "again", 2, |_| ());
        assert!(refusal(&[a, b, again, c]).contains("again.shard: is part 2/3, and so is "));
    }

    #[test]
    fn what_does_not_belong_together_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let first = part(folder.path(), "first", 1, |_| ());
        type Change = fn(&mut Header);
        let changes: [(&str, Change); 7] = [
            ("holds ranks, but facts in", |header| header.kind = ShardKind::Ranks),
            ("was made with seed 2, but 1 in", |header| header.seed = 2),
            ("was made by version 0.0.1", |header| header.version = "0.0.1".to_owned()),
            ("checksum ffff, but 0123456789ab in", |header| header.data = "ffff".to_owned()),
            ("number of parts = 5, but 3 in", |header| header.shard = Shard::new(2, 5).unwrap()),
            ("was made with options.top = 4, but 3 in", |header| {
                header.settings["options"]["top"] = json!(4)
            }),
            ("was made with links = null, but 7 in", |header| {
                header.settings = json!({"options": {"top": 3}})
            }),
        ];
        for (message, change) in changes {
            let other = part(folder.path(), "other", 2, change);
            let refused = refusal(&[first.clone(), other]);
            assert!(refused.contains(message) && refused.contains("first.shard"), "{refused}");
        }
        let old = |index| {
            part(folder.path(), &format!("old{index}"), index, |header| header.version = "0.0.1".into())
        };
        let refused = refusal(&[1, 2, 3].map(old));
        assert!(refused.contains("made by another version of the program (0.0.1; this is "), "{refused}");
    }
}
