//! Members beside the four of the paper and the propagator. Their settings are declared by them; those of the project
//! stand here, too, because this module does not know members. A test of `run::member` compares both.

use std::sync::{PoisonError, RwLock};
use toml::Table;

/// What the configuration knows about a further member.
#[derive(Clone, Debug)]
pub struct FurtherMember {
    /// Its name as a `system`, in `blend.also`, and of its settings `members.NAME`.
    pub name: &'static str,
    /// Its settings with their defaults: the keys that a user may set.
    pub defaults: Table,
}

static FURTHER: RwLock<Vec<FurtherMember>> = RwLock::new(Vec::new());

/// The further members of the project.
fn own() -> [FurtherMember; 1] {
    [FurtherMember { name: "universal", defaults: Table::from_iter([("weights".to_owned(), "".into())]) }]
}

/// Makes the settings of `member` known. Declaring the same name again changes nothing.
pub fn declare(member: FurtherMember) {
    let mut all = FURTHER.write().unwrap_or_else(PoisonError::into_inner);
    if all.iter().all(|known| known.name != member.name) {
        all.push(member);
    }
}

/// The further members, in the order in which they were declared.
pub fn further() -> Vec<FurtherMember> {
    let declared = FURTHER.read().unwrap_or_else(PoisonError::into_inner).clone();
    own().into_iter().chain(declared).collect()
}
