//! JSON documents that carry their own checksum: a changed one is not believed.

use super::Checksum;

/// How a sealed document begins; the checksum follows.
const SEAL: &str = "{\n  \"checksum\": \"";

/// A JSON document with the checksum of the rest of its text as its first field.
pub fn sealed(text: &str) -> String {
    let (rest, sum) = (text.strip_prefix("{\n").unwrap_or_default(), Checksum::of(&text));
    format!("{SEAL}{sum}\",\n{rest}")
}

/// The document that was sealed; `None` if it was changed since.
pub fn unsealed(text: &str) -> Option<String> {
    let (sum, rest) = text.strip_prefix(SEAL)?.split_once("\",\n")?;
    let text = format!("{{\n{rest}");
    (Checksum::of(&text).to_string() == sum).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{sealed, unsealed};

    #[test]
    fn a_document_that_was_changed_is_recognised() {
        let text = serde_json::to_string_pretty(&serde_json::json!({"a": 0.9467, "b": [1, 2]})).unwrap();
        let whole = sealed(&text);
        assert!(serde_json::from_str::<serde_json::Value>(&whole).unwrap()["checksum"].is_string());
        assert_eq!(unsealed(&whole), Some(text.clone()));
        for changed in [whole.replace("0.9467", "0.9999"), whole.replace("[", "[ "), text, String::new()] {
            assert_eq!(unsealed(&changed), None);
        }
    }
}
