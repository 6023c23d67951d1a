//! Collations of the shell, held against expectations.

use super::compare;
use document::{Document, doc};
use std::cmp::Ordering::{self, Equal, Greater, Less};

fn order(left: &str, right: &str, collation: Document) -> Ordering {
    compare(left, right, collation.to_doc_buf().doc()).unwrap()
}

#[test]
fn simple_compares_bytes() {
    assert_eq!(order("a", "B", doc! {"locale": "simple"}), Greater);
    assert_eq!(order("é", "z", doc! {"locale": "simple"}), Greater);
    assert_eq!(order("x", "x", doc! {"locale": "simple"}), Equal);
}

#[test]
fn strengths_tell_letters_then_accents_then_case() {
    for (strength, accents, case) in [(1, Equal, Equal), (2, Less, Equal), (3, Less, Less)] {
        let collation = || doc! {"locale": "en", "strength": strength};
        assert_eq!(order("resume", "résumé", collation()), accents, "{strength}");
        assert_eq!(order("abc", "ABC", collation()), case, "{strength}");
        assert_eq!(order("a", "B", collation()), Less, "{strength}");
    }
    assert_eq!(order("a", "A", doc! {"locale": "en_US", "strength": 1, "caseLevel": true}), Less);
}

#[test]
fn options_say_how_numbers_case_and_punctuation_count() {
    assert_eq!(order("a10", "a2", doc! {"locale": "en"}), Less);
    assert_eq!(order("a10", "a2", doc! {"locale": "en", "numericOrdering": true}), Greater);
    assert_eq!(order("a", "A", doc! {"locale": "en", "caseFirst": "upper"}), Greater);
    let shifted = doc! {"locale": "en", "alternate": "shifted"};
    assert_eq!(order("black-bird", "blackbird", shifted), Equal);
    let spaces = doc! {"locale": "en", "alternate": "shifted", "maxVariable": "space"};
    assert_eq!(order("black-bird", "blackbird", spaces), Less);
}

#[test]
fn languages_have_rules_of_their_own() {
    assert_eq!(order("ä", "z", doc! {"locale": "de"}), Less);
    assert_eq!(order("ä", "z", doc! {"locale": "sv"}), Greater);
    assert_eq!(order("Ä", "Ad", doc! {"locale": "de"}), Less);
    assert_eq!(order("Ä", "Ad", doc! {"locale": "de@collation=phonebook"}), Greater);
    // Canadian French looks at accents from the end.
    assert_eq!(order("cote\u{301}", "co\u{302}te", doc! {"locale": "fr"}), Less);
    assert_eq!(order("cote\u{301}", "co\u{302}te", doc! {"locale": "fr_CA"}), Greater);
}

#[test]
fn what_is_unknown_is_refused() {
    for collation in [
        doc! {},
        doc! {"locale": 5},
        doc! {"locale": "xx"},
        doc! {"locale": "not a locale"},
        doc! {"locale": "de@collation=search"},
        doc! {"locale": "simple", "strength": 1},
        doc! {"locale": "en", "strength": 6},
        doc! {"locale": "en", "strength": "1"},
        doc! {"locale": "en", "backwards": true},
        doc! {"locale": "en", "colour": true},
    ] {
        let error = compare("a", "b", collation.to_doc_buf().doc()).unwrap_err();
        assert_eq!(error.code, document::codes::BAD_VALUE, "{collation:?}");
    }
}
