//! What is checked of the options of miner and reasoner alike.

use super::RuleError;

/// Refuses the option `what`, whose value makes no sense.
pub(super) fn refuse(what: &'static str, remedy: impl Into<String>) -> Result<(), RuleError> {
    Err(RuleError::Option { what, remedy: remedy.into() })
}

/// A count of which none would leave nothing to do.
pub(super) fn at_least_one(what: &'static str, count: u64) -> Result<(), RuleError> {
    if count > 0 { Ok(()) } else { refuse(what, "give a number from 1 on, not 0") }
}

/// A confidence, or what one is multiplied by.
pub(super) fn share(what: &'static str, number: f64) -> Result<(), RuleError> {
    match (0.0..=1.0).contains(&number) {
        true => Ok(()),
        false => refuse(what, format!("give a number from 0 to 1, not {number}")),
    }
}

/// The smoothing constant of the confidence.
pub(super) fn check_unseen(unseen: f64) -> Result<(), RuleError> {
    match unseen >= 0.0 && unseen.is_finite() {
        true => Ok(()),
        false => refuse("unseen", format!("give a number from 0 on, not {unseen}")),
    }
}
