//! Resume tokens, decoded.

use super::{decode, from_hex};
use crate::testing::run;
use document::{Value, doc};

fn decoded(text: &str) -> Result<document::Document, &'static str> {
    decode(&from_hex(text).unwrap())
}

/// A token that the documentation of a public decoder shows with its parts.
const PUBLISHED: &str =
    "82612E8513000000012B022C0100296E5A1004A5093ABB38FE4B9EA67F01BB1A96D812463C5F6964003C5F5F5F78000004";

#[test]
fn a_published_token_has_its_parts() {
    let token = decoded(PUBLISHED).unwrap();
    let time = token.get("clusterTime").unwrap().as_timestamp().unwrap();
    assert_eq!((time.secs, time.inc), (1630438675, 1));
    assert_eq!((token.get_i64("version"), token.get_i64("tokenType")), (Some(1), Some(128)));
    assert_eq!((token.get_i64("txnOpIndex"), token.get_bool("fromInvalidate")), (Some(0), Some(false)));
    let uuid = document::uuid::to_string(&token.get("uuid").unwrap().as_uuid().unwrap());
    assert_eq!(uuid, "a5093abb-38fe-4b9e-a67f-01bb1a96d812");
    assert_eq!(token.get_document("eventIdentifier"), Some(&doc! {"_id": "___x"}));
}

#[test]
fn a_high_water_mark_has_a_time_and_no_event() {
    let token = decoded("82612E8513000000012B0429296E1404").unwrap();
    assert_eq!((token.get_i64("version"), token.get_i64("tokenType")), (Some(2), Some(0)));
    assert!(!token.contains_key("uuid") && !token.contains_key("eventIdentifier"));
}

#[test]
fn keys_of_all_types_are_read() {
    let id = |key: &str| {
        let mut bytes = from_hex("82612E8513000000012B042C0100296E14").unwrap();
        bytes.extend_from_slice(&from_hex(key).unwrap());
        bytes.push(4);
        decoded(&document::encoding::hex(&bytes).to_uppercase())
            .map(|token| token.get_path("eventIdentifier.a").cloned())
    };
    let a = |value: &str| id(&format!("46016100{value}00")).unwrap().unwrap();
    assert_eq!(a("2B0A"), Value::Int32(5));
    assert_eq!(a("27F5"), Value::Int32(-5));
    assert_eq!(a("2C0258"), Value::Int32(300));
    assert_eq!(a("30020000000000"), Value::Int64(1 << 40));
    assert_eq!(a("3C6100FF6200"), Value::from("a\0b"));
    assert_eq!(a("50291400"), document::array![0, (Value::Null)]);
    assert_eq!(a("7880000000000003E8"), Value::DateTime(1000));
    assert_eq!(a("64612F617F37A5DD163BA23823").as_object_id().unwrap().hex(), "612f617f37a5dd163ba23823");
    assert_eq!(a("460162001400"), Value::from(doc! {"b": (Value::Null)}).clone());
}

#[test]
fn what_is_no_token_is_refused_with_a_reason() {
    for (text, reason) in [
        ("", "early"),
        ("82612E85", "early"),
        ("82612E851300000001", "early"),
        ("82612E8513000000012904", "another type"),
        ("82612E8513000000012B0204", "early"),
        ("82612E8513000000012B0229296E0400", "after its end"),
        ("82612E8513000000012B022B0229296E04", "another type"),
        ("82612E8513000000012B0329296E04", "whole numbers"),
        ("FF", "cannot read"),
    ] {
        let error = decoded(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    // A key that only opens documents is refused, not followed down the stack.
    let deep =
        [&from_hex("82612E8513000000012B042C0100296E14").unwrap()[..], &[0x46, 1, 0].repeat(5000)].concat();
    assert!(decode(&deep).unwrap_err().contains("deeply"));
}

#[test]
fn scripts_see_objects_and_the_names_of_types() {
    run(&format!(
        r#"
        const token = decodeResumeToken({{_data: "{PUBLISHED}"}});
        if (token.tokenType !== eventResumeTokenType || highWaterMarkResumeTokenType !== 0) throw Error("types");
        if (tojson(token.clusterTime) !== "Timestamp(1630438675, 1)") throw Error(tojson(token.clusterTime));
        if (token.eventIdentifier._id !== "___x") throw Error("identifier");
        for (const wrong of [{{}}, {{_data: 5}}, {{_data: "82"}}, null, 1]) {{
            let thrown = false;
            try {{ decodeResumeToken(wrong); }} catch (e) {{ thrown = e.code === 2; }}
            if (!thrown) throw Error(tojson(wrong));
        }}
    "#
    ))
    .unwrap();
}
