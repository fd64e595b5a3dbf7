//! How names are spelt in the text of a rule, so that they can be read back.
//!
//! Almost every name is written as it is. A single capital letter is a variable, so an entity of that name is quoted,
//! `h(X,"A")`. A tab or a line break would end the field or the line, so a name containing one is written with `\t`,
//! `\n`, `\r` and doubled backslashes. A name that would be read as the spelling of another name is escaped in the
//! same way. Other readers of the format take quotes and backslashes as part of the name.

use ruleguider_graph::{EntityId, Names, RelationId, Vocabulary};
use std::borrow::Cow;

/// The entity that `text` spells.
pub(super) fn read_entity(text: &str, names: &Names) -> Option<EntityId> {
    let in_quotes = quoted_letter(text).and_then(|letter| names.entities.get(letter));
    in_quotes.or_else(|| called(text, &names.entities)).map(EntityId)
}

/// The relation that `text` spells.
pub(super) fn read_relation(text: &str, names: &Names) -> Option<RelationId> {
    called(text, &names.relations).map(RelationId)
}

/// How an entity is spelt.
pub(super) fn entity(id: EntityId, names: &Names) -> Cow<'_, str> {
    let name = names.entity(id);
    let taken = quoted_letter(name).is_some_and(|inner| names.entities.get(inner).is_some());
    match variable(name).is_some() || taken {
        true => format!("\"{name}\"").into(),
        false => spelt(name, &names.entities),
    }
}

/// How a relation is spelt.
pub(super) fn relation(id: RelationId, names: &Names) -> Cow<'_, str> {
    spelt(names.relation(id), &names.relations)
}

/// The maximum length in bytes of the spelling of a name in `vocabulary`.
pub(super) fn longest(vocabulary: &Vocabulary) -> usize {
    2 * vocabulary.longest() + 2
}

/// The variable that the text stands for, if it is one.
pub(super) fn variable(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [letter @ b'A'..=b'Z'] => Some(*letter),
        _ => None,
    }
}

/// The content of the outermost quotes of a quoted capital letter.
fn quoted_letter(name: &str) -> Option<&str> {
    let inner = name.strip_prefix('"')?.strip_suffix('"')?;
    let (middle, odd) = (inner.len() / 2, inner.len() % 2 == 1);
    let fits = |(place, byte): (usize, u8)| match place == middle {
        true => byte.is_ascii_uppercase(),
        false => byte == b'"',
    };
    (odd && inner.bytes().enumerate().all(fits)).then_some(inner)
}

fn called(text: &str, vocabulary: &Vocabulary) -> Option<u32> {
    unescaped(text).and_then(|name| vocabulary.get(&name)).or_else(|| vocabulary.get(text))
}

fn spelt<'n>(name: &'n str, vocabulary: &Vocabulary) -> Cow<'n, str> {
    let breaks = name.contains(['\t', '\n', '\r']);
    if !breaks && unescaped(name).is_none_or(|other| vocabulary.get(&other).is_none()) {
        return name.into();
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        match letter {
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\\' => escaped.push_str("\\\\"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}

/// The text without escapes, if every backslash begins one of the four escapes.
fn unescaped(text: &str) -> Option<String> {
    memchr::memchr(b'\\', text.as_bytes())?;
    let mut name = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        name.push(match letter {
            '\\' => match letters.next()? {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_name_is_read_back_whatever_the_others_are(
            entities in prop::collection::btree_set("[AtB\"\\\\\t\n\r]{1,5}", 1..40),
        ) {
            let names = Names {
                entities: entities.iter().map(String::as_str).collect(),
                relations: entities.iter().map(String::as_str).collect(),
                ..Names::default()
            };
            for id in 0..entities.len() as u32 {
                let text = entity(EntityId(id), &names);
                prop_assert!(!text.contains(['\t', '\n', '\r']) && text.len() <= longest(&names.entities));
                prop_assert_eq!(variable(&text), None);
                prop_assert_eq!(read_entity(&text, &names), Some(EntityId(id)), "{}", text);
                let text = relation(RelationId(id), &names);
                prop_assert!(!text.contains(['\t', '\n', '\r']) && text.len() <= longest(&names.relations));
                prop_assert_eq!(read_relation(&text, &names), Some(RelationId(id)), "{}", text);
            }
        }
    }

    #[test]
    fn names_without_breaks_stand_as_they_are() {
        let names =
            Names { entities: ["a\\tb", "c:\\new", "\"O\""].into_iter().collect(), ..Names::default() };
        for id in 0..3 {
            assert_eq!(entity(EntityId(id), &names), names.entity(EntityId(id)));
        }
    }
}
