//! A command that has a field twice is refused before anything decides by its fields.
//!
//! Some readers take the first of two fields of one name, others the last: the check of a user's rights could be shown one and
//! the handler the other, or a router the one and a shard the other. The members of a cluster send no field twice, and what
//! they send is theirs to decide, so their commands are not looked through.

use document::{Doc, Result, refuse_doubled};

/// # Errors
/// IDLDuplicateField (40413), for the command that an `explain` explains, too.
pub(super) fn refuse(command: &str, body: Doc<'_>) -> Result<()> {
    refuse_doubled(command, body.iter().map(|e| e.name()))?;
    let explained = body.iter().next().filter(|_| command == "explain").and_then(|e| e.value().as_document());
    match explained.and_then(|inner| Some((inner, inner.iter().next()?.name()))) {
        // It explains nothing that is an `explain` itself, so this ends.
        Some((inner, name)) if name != "explain" => refuse(name, inner),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::refuse;
    use document::{Document, doc};

    fn error(command: &str, body: &Document) -> Option<String> {
        let error = refuse(command, body.to_doc_buf().doc()).err()?;
        assert_eq!(error.code, 40413);
        Some(error.message)
    }

    #[test]
    fn a_field_stands_once_be_it_generic_null_or_the_command_itself() {
        let once = doc! { "find": "c", "filter": { "a": 1 }, "$db": "d", "lsid": {} };
        assert_eq!(error("find", &once), None);
        for twice in ["find", "filter", "$db", "lsid"] {
            let mut body = once.clone();
            body.push(twice, document::Value::Null);
            assert_eq!(
                error("find", &body),
                Some(format!("BSON field 'find.{twice}' is a duplicate field")),
                "{body:?}"
            );
            let explain = doc! { "explain": body.clone(), "$db": "d" };
            assert!(error("explain", &explain).is_some(), "{explain:?}");
        }
        // What a filter says twice is the filter's affair.
        let mut filter = doc! { "a": 1 };
        filter.push("a", 2);
        assert_eq!(error("find", &doc! { "find": "c", "filter": filter }), None);
    }
}
