//! What is added to a test's command before it is sent.

use document::{Doc, DocBuf, DocWriter};

/// The flag of a legacy query that lets a secondary answer.
const SECONDARY_OK: u32 = 4;

/// The whole command: what a legacy `{$query: command, $readPreference: ..}` wraps is unwrapped, `more` added where
/// the command does not say otherwise, then the read preference that `flags` imply and `$db`.
pub(super) fn complete(command: &[u8], database: &str, flags: u32, more: &[u8]) -> DocBuf {
    let outer = Doc::from_validated(command);
    let wrapped = match outer.iter().next() {
        Some(first) if first.name() == "$query" || first.name() == "query" => first.value().as_document(),
        _ => None,
    };
    let inner = wrapped.unwrap_or(outer);
    DocWriter::build(|w| {
        w.fields_of(inner);
        let has = |name: &str| inner.element(name).is_some();
        let preference =
            outer.element("$readPreference").filter(|_| wrapped.is_some() && !has("$readPreference"));
        if let Some(preference) = &preference {
            w.element(preference);
        }
        if flags & SECONDARY_OK != 0 && preference.is_none() && !has("$readPreference") {
            w.document_with("$readPreference", |w| w.string("mode", "secondaryPreferred"));
        }
        for element in Doc::from_validated(more).iter().filter(|e| !has(e.name())) {
            w.element(&element);
        }
        if !has("$db") {
            w.string("$db", database);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Document, doc};

    fn completed(command: Document, flags: u32) -> Document {
        complete(&command.to_vec(), "d", flags, &doc! {"apiVersion": "1"}.to_vec()).to_document()
    }

    #[test]
    fn legacy_wrapping_is_undone() {
        let wrapped = doc! {"$query": {"ping": 1}, "$readPreference": {"mode": "nearest"}};
        let expected =
            doc! {"ping": 1, "$readPreference": {"mode": "nearest"}, "apiVersion": "1", "$db": "d"};
        assert_eq!(completed(wrapped, 4), expected);
    }

    #[test]
    fn secondary_flag_becomes_a_read_preference() {
        let expected = doc! {"ping": 1, "$readPreference": {"mode": "secondaryPreferred"}, "apiVersion": "1", "$db": "d"};
        assert_eq!(completed(doc! {"ping": 1}, 4), expected);
        assert_eq!(
            completed(doc! {"ping": 1, "apiVersion": "2"}, 0),
            doc! {"ping": 1, "apiVersion": "2", "$db": "d"}
        );
    }
}
