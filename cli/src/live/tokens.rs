//! Who may do what: bearer tokens, each with a name and a role. The file has their checksums, not the tokens.

use crate::token;
use anyhow::{Context, bail, ensure};
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// What a token allows, and all that comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Role {
    /// Asking.
    Read,
    /// Verdicts.
    Review,
    /// Facts.
    Write,
    /// Another run.
    Admin,
}

impl Role {
    const ALL: [Role; 4] = [Role::Read, Role::Review, Role::Write, Role::Admin];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Review => "review",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// Someone with a token.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    pub name: Arc<str>,
    pub role: Role,
}

/// The tokens of a file.
#[derive(Debug)]
pub struct Tokens(Vec<(String, Holder)>);

impl Tokens {
    /// Reads the file at `path`: a line each, with name, role and checksum; `#` begins a comment.
    ///
    /// # Errors
    /// If it cannot be read, or a line is something else.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{shown}: cannot be read; `ruleguider live token` makes it"))?;
        let (mut tokens, mut names) = (Vec::new(), HashSet::new());
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [name, role, sum] = fields[..] else {
                bail!(
                    "{shown}:{}: expected a name, a role and a checksum, found {} fields",
                    at + 1,
                    fields.len()
                );
            };
            let known = Role::ALL.into_iter().find(|one| one.name() == role);
            let Some(role) = known else {
                bail!("{shown}:{}: expected read, review, write or admin, found `{role}`", at + 1);
            };
            ensure!(
                sum.len() == token::sum("").len() && sum.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{shown}:{}: expected a checksum; `ruleguider live token` makes a token",
                at + 1
            );
            ensure!(names.insert(name), "{shown}:{}: `{name}` has a token already", at + 1);
            tokens.push((sum.to_ascii_lowercase(), Holder { name: name.into(), role }));
        }
        ensure!(!tokens.is_empty(), "{shown}: has no token; `ruleguider live token` makes one");
        Ok(Self(tokens))
    }

    /// Whose token this is. Takes equally long for every token.
    pub fn holder(&self, given: &str) -> Option<&Holder> {
        let given = token::sum(given);
        let mut found = None;
        for (sum, holder) in &self.0 {
            let differs = sum.bytes().zip(given.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
            if differs == 0 {
                found = Some(holder);
            }
        }
        found
    }

    /// Adds a token for `name` to the file at `path`, which need not exist, and returns it: it is written nowhere.
    ///
    /// # Errors
    /// If the name is taken or no name, or the file cannot be written.
    pub fn add(path: &Path, name: &str, role: Role) -> anyhow::Result<String> {
        ensure!(is_name(name), "{name:?}: expected a name of letters, digits, `-`, `_`, `.` or `@`");
        if path.exists() {
            let taken = Self::read(path)?.0.iter().any(|(_, holder)| *holder.name == *name);
            ensure!(!taken, "{}: `{name}` has a token already; remove its line first", path.display());
        }
        let token = token::new()?;
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let line = format!("{name} {} {}\n", role.name(), token::sum(&token));
        let written = options.open(path).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(token)
    }
}

/// Whether `name` can be the name of a reviewer.
pub fn is_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_alphanumeric() || "-_.@".contains(letter);
    !name.is_empty() && name.len() <= 100 && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_checksum_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let ada = Tokens::add(&path, "ada", Role::Review).unwrap();
        let ben = Tokens::add(&path, "ben", Role::Admin).unwrap();
        assert!(!std::fs::read_to_string(&path).unwrap().contains(&ada));
        let tokens = Tokens::read(&path).unwrap();
        assert_eq!(tokens.holder(&ada), Some(&Holder { name: "ada".into(), role: Role::Review }));
        assert_eq!(tokens.holder(&ben).unwrap().role, Role::Admin);
        for wrong in ["", &ada[1..], &token::sum(&ada)] {
            assert_eq!(tokens.holder(wrong), None);
        }
        assert!(Tokens::add(&path, "ada", Role::Read).is_err());
        assert!(Tokens::add(&path, "a b", Role::Read).is_err());
        for wrong in ["ada review", "ada king 00", "ada read 00", "# nothing"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(Tokens::read(&path).is_err(), "{wrong}");
        }
    }
}
