//! Words of texts: stems, stop words, diacritics, scores.

use super::{Language, TextIndex, TextQuery};
use crate::{Document, array, doc};
use std::sync::Arc;

fn index(weights: Document) -> Arc<TextIndex> {
    Arc::new(TextIndex::parse(&doc! { "weights": weights }).expect("an index"))
}

fn query(search: &str, case: bool, diacritics: bool) -> TextQuery {
    TextQuery::new(index(doc! { "t": 1 }), search, None, case, diacritics, Document::new())
}

fn score(index: &Arc<TextIndex>, search: &str, doc: Document) -> f64 {
    let query = TextQuery::new(index.clone(), search, None, false, false, Document::new());
    query.score(doc.to_doc_buf().doc())
}

#[test]
fn scores_follow_the_formula() {
    let one = index(doc! { "t": 1 });
    assert_eq!(score(&one, "coffee", doc! { "t": "Coffee Shopping" }), 0.75);
    assert_eq!(score(&one, "coffee", doc! { "t": "coffee and cream" }), 0.75, "a stop word is no token");
    // `coffee` is its own stem here, so the string is the term.
    assert_eq!(score(&one, "cream", doc! { "t": "Cream" }), 1.1);
    assert_eq!(score(&one, "milk", doc! { "t": "milk milk tea" }), 1.5 * (0.5 * 2.0 / 3.0 + 0.5));
    let weighted = index(doc! { "a": 10, "b.c": 2 });
    let both = doc! { "a": "red paint", "b": array![doc! { "c": "red" }, doc! { "c": "blue" }] };
    assert_eq!(score(&weighted, "red", both), 10.0 * 0.75 + 2.0 * 1.1);
}

#[test]
fn a_search_that_tells_cases_apart_has_the_scores_of_the_index() {
    let doc = doc! { "t": "Coffee coffee" }.to_doc_buf();
    for sensitive in [false, true] {
        assert_eq!(query("Coffee", sensitive, false).score(doc.doc()), 1.5);
    }
}

#[test]
fn words_end_at_punctuation_and_at_no_other_sign() {
    let terms = |text: &str| -> Vec<String> {
        let doc = doc! { "t": text }.to_doc_buf();
        index(doc! { "t": 1 }).terms(doc.doc()).expect("terms").into_keys().collect()
    };
    assert_eq!(terms("cloud \u{1F600}"), ["cloud", "\u{1F600}"]);
    assert_eq!(terms("\u{AB}cloud\u{BB}\u{2014}cream\u{3002}rock"), ["cloud", "cream", "rock"]);
    assert_eq!(terms("milk_tea+paint=cream|cloud~rock"), ["cloud", "cream", "milk_tea", "paint", "rock"]);
}

#[test]
fn a_search_takes_words_phrases_and_exclusions() {
    let matches = |search: &str, text: &str| {
        query(search, false, false).matches(doc! { "t": text }.to_doc_buf().doc()).unwrap()
    };
    assert!(matches("running cats", "The cat ran"), "stems are compared");
    assert!(matches("CAFE", "a Café"));
    assert!(!matches("cat -black", "a black cat"));
    assert!(matches("cat-black", "a black dog"), "a minus inside a word is punctuation");
    assert!(matches("\"black cat\"", "one Black Cat here"));
    assert!(!matches("\"black cat\"", "a cat, black"));
    assert!(!matches("cat -\"black cat\"", "a black cat"));
    assert!(!matches("-dog", "a cat"), "exclusions alone find nothing");
    assert!(!matches("the and", "the and"), "nor do stop words");
    assert!(!query("Cafe", false, true).matches(doc! { "t": "Café" }.to_doc_buf().doc()).unwrap());
    assert!(!query("coffee", true, false).matches(doc! { "t": "Coffee" }.to_doc_buf().doc()).unwrap());
    assert!(query("Coffee", true, false).matches(doc! { "t": "Coffee" }.to_doc_buf().doc()).unwrap());
}

#[test]
fn languages_come_from_the_index_and_from_documents() {
    assert!(
        Language::find("FRENCH").is_some()
            && Language::find("fr").is_some()
            && Language::find("xx").is_none()
    );
    let all = index(doc! { "$**": 1 });
    let french = doc! { "language": "french", "x": { "y": "les chevaux" }, "n": 1 };
    assert!(all.terms(french.to_doc_buf().doc()).unwrap().contains_key("cheval"));
    assert!(!all.terms(doc! { "x": "les chevaux" }.to_doc_buf().doc()).unwrap().contains_key("cheval"));
}

#[test]
fn a_phrase_that_is_written_many_times_is_looked_for_once_and_shown_as_it_is_written() {
    let of = |phrases: usize| query(&"\"a cat\" ".repeat(phrases), false, false);
    let text = doc! { "t": format!("a cat{}", " dog".repeat(10_000)) }.to_doc_buf();
    let units = |query: &TextQuery| {
        crate::meter::within(&mut crate::meter::Oversight::default(), || {
            assert!(query.matches(text.doc()).unwrap());
            crate::meter::spent()
        })
    };
    assert_eq!(units(&of(1)), units(&of(1000)));
    assert_eq!(of(3).parsed().get_array("phrases").map(|list| list.len()), Some(3));
}

#[test]
fn weights_of_paths_that_begin_alike_are_told_apart() {
    let weights = doc! { "a-b": 2, "a.b": 3, "a": 5, "c.d.e": 7 };
    let index = TextIndex::parse(&doc! { "weights": weights }).unwrap();
    let terms = |d: Document| index.terms(d.to_doc_buf().doc()).unwrap().len();
    assert_eq!(terms(doc! { "a": "red", "a-b": "green", "c": { "d": { "e": "blue" } } }), 3);
    assert_eq!(terms(doc! { "a": { "b": "red", "c": "green" }, "c": { "e": "blue" }, "c-d": "black" }), 1);
}
