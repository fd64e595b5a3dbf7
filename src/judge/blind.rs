//! What each judge sees when, and on which side: by hash of a secret and the item.
//!
//! The secret is random and drawn for one judge. The source is public, the seed of a study is on its page, and a judge
//! knows their own number: a hash of these alone would tell a judge which path is whose. What was drawn is stored with
//! the study, so the secret need not be.
//!
//! Nothing here depends on which system is better, on its scores or on the other judges. Some items are shown twice,
//! to measure a judge's self-agreement: from the first third of the judge's order, again in the last third.

use sha2::{Digest, Sha256};

/// One in this many items is shown twice.
const REPEATED_ONE_IN: usize = 20;

/// One screen of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The item, by its place in the study.
    pub item: usize,
    /// Whether the judge has seen it before.
    pub repeat: bool,
    /// Whether the path of the pair's first system is on the left.
    pub first_on_left: bool,
}

/// What the screens of one judge are drawn by: bytes from the system's random numbers, which nobody keeps.
pub type Secret = [u8; 32];

/// A number that depends on these arguments only, and that nobody can compute without the secret.
fn hash(purpose: &str, secret: &Secret, item: usize, repeat: bool) -> u64 {
    let mut sum = Sha256::new_with_prefix(secret);
    sum.update(purpose);
    for part in [item as u64, u64::from(repeat)] {
        sum.update(part.to_le_bytes());
    }
    let digest = sum.finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

/// The screens of a judge of a study with `count` items, in order.
pub fn screens(count: usize, secret: &Secret) -> Vec<Screen> {
    let screen =
        |item, repeat| Screen { item, repeat, first_on_left: hash("side", secret, item, repeat) & 1 == 0 };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&item| hash("order", secret, item, false));
    let mut early = order[..count / 3].to_vec();
    early.sort_by_key(|&item| hash("repeated", secret, item, true));
    early.truncate((count + REPEATED_ONE_IN / 2) / REPEATED_ONE_IN);
    let late_from = count - count / 3;
    let mut late: Vec<(u64, Screen)> = order[late_from..]
        .iter()
        .map(|&item| (hash("order", secret, item, false), screen(item, false)))
        .collect();
    // The position of a repetition among the last items is drawn independently.
    let span = |from: Option<&(u64, Screen)>| from.map_or(0, |(key, _)| *key);
    let (least, most) = (span(late.first()), span(late.last()));
    for item in early {
        let place = hash("again", secret, item, true) % (most - least).saturating_add(1);
        late.push((least + place, screen(item, true)));
    }
    late.sort_by_key(|(place, screen)| (*place, screen.item));
    let first = order[..late_from].iter().map(|&item| screen(item, false));
    first.chain(late.into_iter().map(|(_, screen)| screen)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn screens_by(count: usize, secret: u8) -> Vec<Screen> {
        screens(count, &[secret; 32])
    }

    #[test]
    fn every_item_comes_once_and_one_in_twenty_again_much_later() {
        for items in [0, 1, 2, 9, 10, 20, 30, 300, 301] {
            for judge in 1..6 {
                let screens = screens_by(items, judge);
                let repeats = (items + 10) / 20;
                assert_eq!(screens.len(), items + repeats.min(items / 3), "{items}");
                let mut seen: HashMap<usize, usize> = HashMap::new();
                for (at, screen) in screens.iter().enumerate() {
                    match seen.insert(screen.item, at) {
                        None => assert!(!screen.repeat),
                        Some(before) => {
                            assert!(screen.repeat && at - before >= items / 3, "{items}: {before}, {at}");
                        }
                    }
                }
                assert_eq!(seen.len(), items);
            }
        }
    }

    #[test]
    fn the_secret_alone_decides() {
        assert_eq!(screens_by(300, 1), screens_by(300, 1));
        assert_ne!(screens_by(300, 1), screens_by(300, 2));
    }

    #[test]
    fn sides_are_even_and_independent_of_the_judge_and_of_the_first_time() {
        let sides = |secret: u8| -> HashMap<(usize, bool), bool> {
            let all = screens_by(1000, secret);
            all.into_iter().map(|screen| ((screen.item, screen.repeat), screen.first_on_left)).collect()
        };
        let (one, other) = (sides(1), sides(2));
        let left = one.values().filter(|left| **left).count() as f64 / one.len() as f64;
        // Four standard deviations of a fair coin.
        assert!((left - 0.5).abs() < 2.0 / (one.len() as f64).sqrt(), "{left}");
        let same = (0..1000).filter(|&item| one[&(item, false)] == other[&(item, false)]).count();
        assert!((same as f64 / 1000.0 - 0.5).abs() < 2.0 / 1000f64.sqrt(), "{same}");
        let repeats: Vec<bool> = one
            .keys()
            .filter(|key| key.1)
            .map(|&(item, _)| one[&(item, true)] == one[&(item, false)])
            .collect();
        assert_eq!(repeats.len(), 50);
        assert!(repeats.iter().any(|same| *same) && repeats.iter().any(|same| !*same));
    }
}
