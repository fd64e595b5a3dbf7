//! Tokens: random, printed once, stored as a checksum.

use ruleguider::run::Checksum;

/// Bytes of a token: 192 bits cannot be guessed.
const BYTES: usize = 24;

/// A new token.
///
/// # Errors
/// If the system has no random numbers.
pub fn new() -> anyhow::Result<String> {
    let mut bytes = [0; BYTES];
    fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Fills `bytes` with the system's random numbers.
///
/// # Errors
/// If it has none.
pub fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    getrandom::fill(bytes).map_err(|error| anyhow::anyhow!("cannot get random numbers: {error}"))
}

/// The checksum of a token, which is all that is stored.
pub fn sum(token: &str) -> String {
    Checksum::of(&token).to_string()
}
