//! `$changeStreamSplitLargeEvent`: an event above the largest document comes in fragments.
//!
//! The top-level fields, smallest first and equal ones by name, are put into a fragment while they fit. Each fragment has
//! the event's `_id` with `fragmentNum`, and `splitEvent: {fragment, of}`.

use super::Token;
use document::validate::Limits;
use document::{DocBuf, DocWriter, Element, Result, bail};

/// What `splitEvent` and the wrapping document need at most.
const SPLIT_EVENT_BYTES: usize = 64;

/// The event itself, or its fragments.
///
/// # Errors
/// 7182500 when one field alone is too large.
pub fn split(event: DocBuf) -> Result<Vec<DocBuf>> {
    split_at(event, Limits::USER.bytes_max)
}

fn split_at(event: DocBuf, most: usize) -> Result<Vec<DocBuf>> {
    if event.bytes().len() <= most {
        return Ok(vec![event]);
    }
    let Some(token) = event.get("_id").and_then(|v| v.as_document()).map(|d| Token::parse(&d.to_document()))
    else {
        bail!(7182502, "an event that is to be split has no resume token")
    };
    let token = token?;
    let mut fields: Vec<Element<'_>> = event.doc().iter().filter(|e| e.name() != "_id").collect();
    fields.sort_by_key(|e| (e.whole().len(), e.name_bytes()));
    let overhead = SPLIT_EVENT_BYTES + Token { fragment: Some(i32::MAX), ..token.clone() }.data().len() + 32;
    let mut groups: Vec<Vec<Element<'_>>> = Vec::new();
    let mut size = most;
    for field in fields {
        let length = field.whole().len();
        if overhead + length > most {
            bail!(
                7182500,
                "Splitting change event failed: the field '{}' of {length} bytes does not fit into a document",
                field.name()
            );
        }
        if size + length > most {
            groups.push(Vec::new());
            size = overhead;
        }
        size += length;
        groups.last_mut().into_iter().for_each(|g| g.push(field));
    }
    let of = groups.len() as i32;
    Ok(groups.iter().enumerate().map(|(i, g)| fragment(&token, i as i32, of, g)).collect())
}

/// An event that another node had split, whole again: fields come in the order of their sizes.
///
/// # Errors
/// Those of [`Token::parse`].
pub fn join(fragments: &[DocBuf]) -> Result<DocBuf> {
    let id = fragments.first().and_then(|f| f.doc().get_document("_id")).map(|d| d.to_document());
    let data = Token::parse(&id.unwrap_or_default())?.whole().data();
    Ok(DocWriter::build(|w| {
        w.document_with("_id", |w| w.string("_data", &data));
        for fragment in fragments {
            let own = |e: &Element<'_>| !matches!(e.name(), "_id" | "splitEvent");
            fragment.doc().iter().filter(own).for_each(|e| w.element(&e));
        }
    }))
}

fn fragment(token: &Token, i: i32, of: i32, fields: &[Element<'_>]) -> DocBuf {
    let data = Token { fragment: Some(i), ..token.clone() }.data();
    DocWriter::build(|w| {
        w.document_with("_id", |w| w.string("_data", &data));
        w.document_with("splitEvent", |w| {
            w.i32("fragment", i + 1);
            w.i32("of", of);
        });
        fields.iter().for_each(|e| w.element(e));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Timestamp, doc};

    #[test]
    fn fields_are_packed_smallest_first() {
        let token = Token::event(Timestamp::new(5, 1), 0, None, doc! { "operationType": "update" });
        let text = |n: usize| "x".repeat(n);
        let event = doc! {
            "_id": (token.to_document()), "big": (text(700)), "a": 1, "middle": (text(600)), "z": (text(100)),
        };
        let parts = split_at(event.to_doc_buf(), 1000).unwrap();
        let names: Vec<Vec<String>> =
            parts.iter().map(|p| p.to_document().keys().map(str::to_string).collect()).collect();
        assert_eq!(names, [vec!["_id", "splitEvent", "a", "z", "middle"], vec!["_id", "splitEvent", "big"]]);
        assert_eq!(parts[1].to_document().get_path("splitEvent.of").unwrap().as_i64(), Some(2));
        assert_eq!(
            Token::parse(parts[1].to_document().get_document("_id").unwrap()).unwrap().fragment,
            Some(1)
        );
        let joined = join(&parts).unwrap().to_document();
        assert!(event.iter().all(|(name, v)| joined.get(name) == Some(v)) && joined.len() == event.len());
        assert_eq!(split_at(event.to_doc_buf(), 400).unwrap_err().code, 7182500);
        assert_eq!(split_at(event.to_doc_buf(), 5000).unwrap().len(), 1);
    }
}
