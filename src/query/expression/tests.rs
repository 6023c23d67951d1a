//! Each line: an expression, and what it gives on the document below; or the code of its error.

use super::{Expression, Variables, Vars};
use document::{DocBuf, Document, Value, doc, extended_json, meter};

const ROOT: &str = r#"{"_id": 1, "n": 7, "d": 2.5, "s": "Hello", "nul": null, "a": [1, 2, 3], "o": {"x": 1, "y": [{"z": 1}, {"z": 2}, 5]},
    "t": {"$date": "2024-02-29T12:34:56.789Z"}, "l": {"$numberLong": "9223372036854775807"}}"#;

fn eval(text: &str) -> document::Result<Option<Value>> {
    let root = extended_json::from_str(ROOT).unwrap();
    let Value::Document(root) = root else { panic!("not a document") };
    let e = Expression::parse(&extended_json::from_str(text)?, &Variables::new())?;
    e.eval(root.to_doc_buf().doc(), &mut Vars::new(1_700_000_000_000))
}

#[track_caller]
fn gives(expression: &str, expected: &str) {
    let found = eval(expression).unwrap_or_else(|e| panic!("{expression}: {e}"));
    let found = found.map_or("missing".to_string(), |v| extended_json::to_relaxed(&doc! {"v": v}.into()));
    let expected = match expected {
        "missing" => expected.to_string(),
        text => {
            let v = extended_json::from_str(text).unwrap();
            extended_json::to_relaxed(&doc! {"v": v}.into())
        }
    };
    assert_eq!(found, expected, "{expression}");
}

#[track_caller]
fn fails(expression: &str, code: i32) {
    match eval(expression) {
        Err(e) => assert_eq!(e.code, code, "{expression}: {e}"),
        Ok(v) => panic!("{expression} gave {v:?}"),
    }
}

#[test]
fn paths_go_through_documents_and_the_documents_of_arrays() {
    gives(r#""$n""#, "7");
    gives(r#""$o.x""#, "1");
    gives(r#""$o.y.z""#, "[1, 2]");
    gives(r#""$a.0""#, "[]");
    gives(r#""$absent.x""#, "missing");
    gives(r#""$$ROOT.s""#, r#""Hello""#);
    gives(r#""$$NOW""#, r#"{"$date": "2023-11-14T22:13:20Z"}"#);
    gives(r#"{"a": "$absent", "b": "$n"}"#, r#"{"b": 7}"#);
    gives(r#"["$absent", 1]"#, "[null, 1]");
    fails(r#""$$absent""#, 17276);
    fails(r#""$a..b""#, 15998);
    fails(r#""$""#, 16872);
    fails(r#"{"$nope": 1}"#, 168);
    fails(r#"{"$add": 1, "b": 2}"#, 15983);
}

#[test]
fn arithmetic_widens_and_refuses() {
    gives(r#"{"$add": ["$n", 1, 0.5]}"#, "8.5");
    gives(r#"{"$add": ["$l", 1]}"#, "9223372036854775808.0");
    gives(r#"{"$add": [{"$numberInt": "2147483647"}, 1]}"#, r#"{"$numberLong": "2147483648"}"#);
    gives(r#"{"$add": ["$n", null, "x"]}"#, "null");
    // A double so large that the sum leaves even the widest integer.
    for operator in ["$add", "$subtract"] {
        fails(&format!(r#"{{"{operator}": ["$t", 1e308]}}"#), 15);
        fails(&format!(r#"{{"{operator}": ["$t", -1e308]}}"#), 15);
    }
    gives(r#"{"$subtract": ["$t", "$t"]}"#, r#"{"$numberLong": "0"}"#);
    gives(r#"{"$multiply": [2, 3, 4]}"#, "24");
    gives(r#"{"$divide": [7, 2]}"#, "3.5");
    gives(r#"{"$mod": [-7, 3]}"#, "-1");
    gives(r#"{"$round": [2.5]}"#, "2.0");
    gives(r#"{"$round": [1250, -2]}"#, "1200");
    gives(r#"{"$trunc": [0.29, 2]}"#, "0.28");
    gives(r#"{"$pow": [2, 10]}"#, "1024");
    gives(r#"{"$pow": [0, {"$numberLong": "9223372036854775807"}]}"#, r#"{"$numberLong": "0"}"#);
    gives(
        r#"{"$sqrt": {"$numberDecimal": "2"}}"#,
        r#"{"$numberDecimal": "1.414213562373095048801688724209698"}"#,
    );
    gives(r#"{"$sum": [1e30, 1.5, -1e30]}"#, "1.5");
    fails(r#"{"$divide": [1, 0]}"#, 2);
    fails(r#"{"$mod": [1, 0]}"#, 16610);
    fails(r#"{"$add": ["$s", 1]}"#, 14);
    fails(r#"{"$abs": {"$numberLong": "-9223372036854775808"}}"#, 28680);
    fails(r#"{"$subtract": [1]}"#, 16020);
}

#[test]
fn comparison_orders_types_and_missing() {
    gives(r#"{"$lt": ["$absent", null]}"#, "true");
    gives(r#"{"$eq": [1, 1.0]}"#, "true");
    gives(r#"{"$cmp": ["a", 1]}"#, "1");
    gives(r#"{"$and": [1, "$nul"]}"#, "false");
    gives(r#"{"$or": [true, {"$divide": [1, 0]}]}"#, "true");
}

#[test]
fn conditions_evaluate_one_branch() {
    gives(r#"{"$cond": [{"$gt": ["$n", 5]}, "big", {"$divide": [1, 0]}]}"#, r#""big""#);
    gives(r#"{"$ifNull": ["$nul", "$absent", 3]}"#, "3");
    gives(r#"{"$switch": {"branches": [{"case": false, "then": 1}], "default": 2}}"#, "2");
    fails(r#"{"$switch": {"branches": [{"case": false, "then": 1}]}}"#, 40069);
    fails(r#"{"$cond": {"if": 1, "then": 2}}"#, 17082);
}

#[test]
fn bound_variables_shadow_and_end() {
    gives(r#"{"$map": {"input": "$a", "in": {"$multiply": ["$$this", "$n"]}}}"#, "[7, 14, 21]");
    gives(r#"{"$filter": {"input": "$a", "as": "e", "cond": {"$gt": ["$$e", 1]}, "limit": 1}}"#, "[2]");
    gives(r#"{"$reduce": {"input": "$a", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}"#, "6");
    gives(
        r#"{"$let": {"vars": {"x": 1}, "in": {"$let": {"vars": {"x": 2, "y": "$$x"}, "in": ["$$x", "$$y"]}}}}"#,
        "[2, 1]",
    );
    gives(r#"{"$let": {"vars": {"CURRENT": "$o"}, "in": "$x"}}"#, "1");
    gives(
        r#"{"$map": {"input": [{"x": 5}, {}], "as": "CURRENT", "in": ["$x", "$$CURRENT", "$$ROOT.n"]}}"#,
        r#"[[5, {"x": 5}, 7], [null, {}, 7]]"#,
    );
    gives(
        r#"{"$filter": {"input": [{"x": 5}, {"x": 6}], "as": "CURRENT", "cond": {"$gt": ["$x", 5]}}}"#,
        r#"[{"x": 6}]"#,
    );
    gives(
        r#"{"$map": {"input": [{"x": 5}], "as": "CURRENT", "in": {"$map": {"input": [1], "in": ["$$this", "$x"]}}}}"#,
        "[[[1, 5]]]",
    );
    fails(r#"{"$let": {"vars": {"X": 1}, "in": 1}}"#, 9);
}

#[test]
fn strings_count_bytes_or_code_points() {
    gives(r#"{"$concat": ["$s", " ", "you"]}"#, r#""Hello you""#);
    gives(r#"{"$strLenBytes": "é"}"#, "2");
    gives(r#"{"$strLenCP": "é"}"#, "1");
    gives(r#"{"$substrCP": ["cafétéria", 3, 3]}"#, r#""été""#);
    gives(r#"{"$split": ["a,b,,c", ","]}"#, r#"["a", "b", "", "c"]"#);
    gives(r#"{"$indexOfCP": ["$s", "l", 3]}"#, "3");
    gives(r#"{"$trim": {"input": "  x "}}"#, r#""x""#);
    let long = format!("zy{}", "x".repeat(100));
    gives(&format!(r#"{{"$trim": {{"input": "yzaz y", "chars": "{long}"}}}}"#), r#""az ""#);
    gives(&format!(r#"{{"$ltrim": {{"input": "yzaz y", "chars": "{long}"}}}}"#), r#""az y""#);
    gives(r#"{"$replaceAll": {"input": "aXbX", "find": "X", "replacement": "-"}}"#, r#""a-b-""#);
    gives(r#"{"$toUpper": "abc"}"#, r#""ABC""#);
    gives(
        r#"{"$regexFind": {"input": "abcab", "regex": "b(c)?", "options": "i"}}"#,
        r#"{"match": "bc", "idx": 1, "captures": ["c"]}"#,
    );
    gives(r#"{"$regexMatch": {"input": "$nul", "regex": "x"}}"#, "false");
    fails(r#"{"$substrBytes": ["é", 1, 1]}"#, 28656);
    fails(r#"{"$concat": ["$n"]}"#, 16702);
}

#[test]
fn arrays_and_sets() {
    gives(r#"{"$arrayElemAt": ["$a", -1]}"#, "3");
    gives(r#"{"$arrayElemAt": ["$a", 9]}"#, "missing");
    gives(r#"{"$slice": ["$a", -2]}"#, "[2, 3]");
    gives(r#"{"$range": [0, 10, 4]}"#, "[0, 4, 8]");
    gives(
        r#"{"$zip": {"inputs": ["$a", [9]], "useLongestLength": true, "defaults": [0, 8]}}"#,
        "[[1, 9], [2, 8], [3, 8]]",
    );
    gives(
        r#"{"$sortArray": {"input": [{"a": 2}, {"a": 1}], "sortBy": {"a": 1}}}"#,
        r#"[{"a": 1}, {"a": 2}]"#,
    );
    gives(r#"{"$in": [2.0, "$a"]}"#, "true");
    gives(r#"{"$setDifference": [[1, 2, 1, 3], [2]]}"#, "[1, 3]");
    gives(r#"{"$setEquals": [[1, 2], [2, 1.0, 1]]}"#, "true");
    gives(r#"{"$maxN": {"n": 2, "input": "$a"}}"#, "[3, 2]");
    fails(r#"{"$size": "$n"}"#, 17124);
    fails(r#"{"$range": [0, 1, 0]}"#, 34449);
}

#[test]
fn objects() {
    gives(r#"{"$mergeObjects": [{"a": 1, "b": 1}, null, {"b": 2}]}"#, r#"{"a": 1, "b": 2}"#);
    gives(r#"{"$objectToArray": {"a": 1}}"#, r#"[{"k": "a", "v": 1}]"#);
    gives(r#"{"$arrayToObject": [[["a", 1], ["b", 2]]]}"#, r#"{"a": 1, "b": 2}"#);
    // Fields that come again keep their places, also among many.
    let pairs = |ns: &mut dyn Iterator<Item = (i32, i32)>| {
        ns.map(|(k, v)| format!(r#"{{"k": "f{k}", "v": {v}}}"#)).collect::<Vec<_>>().join(", ")
    };
    let (first, again) = (pairs(&mut (0..100).map(|i| (i, 1))), pairs(&mut (20..60).rev().map(|i| (i, 2))));
    let fields = (0..100).map(|i| format!(r#""f{i}": {}"#, if (20..60).contains(&i) { 2 } else { 1 }));
    let merged = format!("{{{}}}", fields.collect::<Vec<_>>().join(", "));
    gives(&format!(r#"{{"$arrayToObject": [[{first}, {again}]]}}"#), &merged);
    let objects = [first, again].map(|pairs| format!(r#"{{"$arrayToObject": [[{pairs}]]}}"#)).join(", ");
    gives(&format!(r#"{{"$mergeObjects": [{objects}]}}"#), &merged);
    gives(r#"{"$getField": {"field": "x", "input": "$o"}}"#, "1");
    gives(r#"{"$setField": {"field": "x.y", "input": {}, "value": 1}}"#, r#"{"x.y": 1}"#);
    gives(r#"{"$unsetField": {"field": "x", "input": {"x": 1, "z": 2}}}"#, r#"{"z": 2}"#);
}

#[test]
fn dates_know_the_calendar_and_zones() {
    gives(r#"{"$year": "$t"}"#, "2024");
    gives(r#"{"$dayOfYear": "$t"}"#, "60");
    gives(r#"{"$hour": {"date": "$t", "timezone": "America/New_York"}}"#, "7");
    gives(r#"{"$isoWeek": "$t"}"#, "9");
    gives(
        r#"{"$dateToString": {"date": "$t", "format": "%Y/%m/%d %H:%M:%S.%L %z", "timezone": "+05:30"}}"#,
        r#""2024/02/29 18:04:56.789 +0530""#,
    );
    gives(
        r#"{"$dateAdd": {"startDate": "$t", "unit": "year", "amount": 1}}"#,
        r#"{"$date": "2025-02-28T12:34:56.789Z"}"#,
    );
    gives(
        r#"{"$dateDiff": {"startDate": "$t", "endDate": {"$date": "2024-03-01T00:00:00Z"}, "unit": "day"}}"#,
        r#"{"$numberLong": "1"}"#,
    );
    gives(
        r#"{"$dateTrunc": {"date": "$t", "unit": "week", "startOfWeek": "monday"}}"#,
        r#"{"$date": "2024-02-26T00:00:00Z"}"#,
    );
    gives(
        r#"{"$dateFromString": {"dateString": "2024-03-10T02:30:00", "timezone": "America/New_York"}}"#,
        r#"{"$date": "2024-03-10T07:30:00Z"}"#,
    );
    gives(
        r#"{"$dateFromParts": {"year": 2024, "month": 14, "day": 1}}"#,
        r#"{"$date": "2025-02-01T00:00:00Z"}"#,
    );
    fails(r#"{"$dateFromParts": {"year": 1970, "millisecond": 18014398509481984}}"#, 159);
    fails(r#"{"$year": "$s"}"#, 16006);
    fails(r#"{"$hour": {"date": "$t", "timezone": "Nowhere"}}"#, 40485);
    fails(r#"{"$dateFromString": {"dateString": "bogus"}}"#, 241);
}

#[test]
fn conversions() {
    gives(r#"{"$toInt": "42"}"#, "42");
    gives(r#"{"$toLong": 1.9}"#, r#"{"$numberLong": "1"}"#);
    gives(r#"{"$toString": 2.5}"#, r#""2.5""#);
    gives(r#"{"$toString": 1e20}"#, r#""1e+20""#);
    gives(r#"{"$toDate": {"$numberLong": "0"}}"#, r#"{"$date": "1970-01-01T00:00:00Z"}"#);
    gives(r#"{"$convert": {"input": "x", "to": "int", "onError": -1}}"#, "-1");
    gives(r#"{"$convert": {"input": null, "to": "int", "onNull": 0}}"#, "0");
    gives(r#"{"$type": "$absent"}"#, r#""missing""#);
    fails(r#"{"$toInt": "1.5"}"#, 241);
    fails(r#"{"$convert": {"input": 1, "to": "nope"}}"#, 2);
}

#[test]
fn ids_and_bytes_are_read_from_their_digits_and_nothing_else() {
    let id = "0102030405060708090a0b0c";
    gives(&format!(r#"{{"$toString": {{"$toObjectId": "{id}"}}}}"#), &format!("\"{id}\""));
    fails(r#"{"$toObjectId": "+102030405060708090a0b0c"}"#, 241);
    let bytes = |text: &str, format: &str| {
        let to = r#"{"type": "binData", "subtype": 0}"#;
        format!(r#"{{"$convert": {{"input": "{text}", "to": {to}, "format": "{format}"}}}}"#)
    };
    for (text, format) in [("00ff", "hex"), ("AP8=", "base64"), ("AP8", "base64url")] {
        gives(&bytes(text, format), r#"{"$binary": {"base64": "AP8=", "subType": "00"}}"#);
    }
    for (text, format) in [("+0ff", "hex"), ("AP8", "base64"), ("AP8+", "base64url")] {
        fails(&bytes(text, format), 241);
    }
    let uuid = "00112233-4455-6677-8899-aabbccddeeff";
    gives(&format!(r#"{{"$toString": {{"$toUUID": "{uuid}"}}}}"#), &format!("\"{uuid}\""));
    fails(&format!(r#"{{"$toUUID": "{{{uuid}}}"}}"#), 241);
    fails(&format!(r#"{{"$toUUID": "{}"}}"#, uuid.replace('-', "")), 241);
}

#[test]
fn needed_fields_are_the_paths_read() {
    let parse = |text: &str| {
        Expression::parse(&extended_json::from_str(text).unwrap(), &Variables::new()).unwrap().needed_fields()
    };
    assert_eq!(
        parse(r#"{"$add": ["$a.b", {"$cond": ["$c", 1, "$d"]}]}"#),
        Some(vec!["a.b".into(), "c".into(), "d".into()])
    );
    assert_eq!(parse(r#"{"$mergeObjects": ["$$ROOT", {}]}"#), None);
}

#[test]
fn no_two_rows_share_a_name() {
    let mut names: Vec<&str> = super::table::OPERATORS.iter().map(|o| o.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|w| w[0] != w[1]));
}

#[test]
fn conversions_take_and_refuse_what_c_and_the_wire_do() {
    for (text, expected) in [("+0x1p-1", "0.5"), ("-0x1.8P1", "-3.0"), ("0XFF", "255.0"), ("+0x0p0", "0.0")] {
        gives(&format!(r#"{{"$toDouble": "{text}"}}"#), expected);
    }
    let zeros = "0".repeat(100);
    gives(&format!(r#"{{"$toDouble": "0X{zeros}F"}}"#), "15.0");
    gives(&format!(r#"{{"$toDouble": "0X1{zeros}p-400"}}"#), "1.0");
    for text in ["0x1p0", "+0x", "+0x1p", "+0xp0", "+0x.p0", "+0xg", "+0x1p9999", "1e-400", "-1e400"] {
        fails(&format!(r#"{{"$toDouble": "{text}"}}"#), 241);
    }
    for text in ["1E+6145", "1E-6177"] {
        fails(&format!(r#"{{"$toDecimal": "{text}"}}"#), 241);
    }
    gives(r#"{"$toString": {"$literal": {"$binary": {"base64": "AQI=", "subType": "04"}}}}"#, r#""AQI=""#);
    fails(r#"{"$convert": {"input": "AQI=", "to": "binData", "format": "auto"}}"#, 241);
    fails(
        r#"{"$convert": {"input": "AQI=", "to": {"type": "binData", "subtype": 4}, "format": "base64"}}"#,
        241,
    );
    gives(r#"{"$convert": {"input": null, "to": {"type": "binData", "subtype": 999}, "onNull": 5}}"#, "5");
    fails(r#"{"$convert": {"input": 1, "to": 0}}"#, 241);
    fails(r#"{"$toString": {"$toDate": {"$numberLong": "253402300800000"}}}"#, 18537);
}

#[test]
fn matches_begin_before_the_end_and_patterns_are_looked_at_first() {
    gives(r#"{"$indexOfCP": ["hello", "llo", 0, 4]}"#, "2");
    gives(r#"{"$indexOfCP": ["", ""]}"#, "0");
    for arguments in
        [r#""hello", "", 5"#, r#""hello", "", 2, 2"#, r#""hello", "lo", 0, 3"#, r#""hello", "o", 4, 2"#]
    {
        gives(&format!(r#"{{"$indexOfCP": [{arguments}]}}"#), "-1");
    }
    gives(
        r#"{"$regexFindAll": {"input": "ab", "regex": ""}}"#,
        r#"[{"match": "", "idx": 0, "captures": []}, {"match": "", "idx": 1, "captures": []}]"#,
    );
    gives(r#"{"$regexFindAll": {"input": "", "regex": ""}}"#, r#"[{"match": "", "idx": 0, "captures": []}]"#);
    fails(r#"{"$regexMatch": {"input": 1, "regex": 2}}"#, 51105);
    fails(
        r#"{"$regexMatch": {"input": 1, "regex": {"$regularExpression": {"pattern": "a", "options": "i"}}, "options": "i"}}"#,
        51107,
    );
    fails(r#"{"$regexMatch": {"input": 1, "regex": "a"}}"#, 51104);
    let long = "a".repeat(16 * 1024 + 1);
    fails(&format!(r#"{{"$regexMatch": {{"input": "a", "regex": "{long}"}}}}"#), 51111);
    fails(r#"{"$setField": {"field": "x"}}"#, 4161103);
    fails(r#"{"$setField": {"field": {"a": 1}, "input": {}, "value": 1}}"#, 4161106);
    fails(r#"{"$unsetField": {"field": ["a"], "input": {}}}"#, 4161106);
    fails(r#"{"$unsetField": {"field": {}, "input": {}}}"#, 4161107);
}

fn eval_in(expression: Document, root: &DocBuf) -> document::Result<Option<Value>> {
    Expression::parse(&Value::Document(expression), &Variables::new())?.eval(root.doc(), &mut Vars::new(0))
}

/// Evaluates under a bound of some quanta, as a command under its time limit does.
fn eval_bounded(quanta: u32, expression: Document, root: &DocBuf) -> document::Result<Option<Value>> {
    meter::within(&mut meter::Oversight::default(), || meter::bounded(quanta, || eval_in(expression, root)))
}

#[track_caller]
fn is_interrupted(quanta: u32, expression: Document, root: &DocBuf) {
    let shown: String = format!("{expression:?}").chars().take(100).collect();
    let ended = eval_bounded(quanta, expression, root);
    assert_eq!(ended.err().map(|e| e.code), Some(meter::OVERRUN), "{shown}");
}

#[test]
fn texts_are_replaced_and_a_result_that_is_too_long_is_refused_as_it_grows() {
    gives(r#"{"$replaceAll": {"input": "abcab", "find": "ab", "replacement": "-"}}"#, r#""-c-""#);
    gives(r#"{"$replaceAll": {"input": "abc", "find": "", "replacement": "-"}}"#, r#""-a-b-c-""#);
    gives(r#"{"$replaceOne": {"input": "abcab", "find": "ab", "replacement": "-"}}"#, r#""-cab""#);
    gives(r#"{"$replaceOne": {"input": "abc", "find": "", "replacement": "-"}}"#, r#""-abc""#);
    gives(r#"{"$replaceOne": {"input": "abc", "find": "x", "replacement": "-"}}"#, r#""abc""#);
    // A million times a million bytes.
    let (input, replacement) = ("a".repeat(1_000_000), "b".repeat(1_000_000));
    let all = doc! {"$replaceAll": {"input": input, "find": "a", "replacement": replacement}};
    assert_eq!(eval_in(all, &DocBuf::new()).unwrap_err().code, 16493);
}

#[test]
fn texts_are_found_in_texts_by_bytes_and_by_characters() {
    gives(r#"{"$indexOfBytes": ["cafétéria", "é"]}"#, "3");
    gives(r#"{"$indexOfBytes": ["éé", "é", 1]}"#, "2");
    gives(r#"{"$indexOfBytes": ["aé", "é", 0, 2]}"#, "-1");
    gives(r#"{"$indexOfBytes": ["abab", "ab", 1]}"#, "2");
    gives(r#"{"$indexOfBytes": ["abab", "ab", 1, 3]}"#, "-1");
    gives(r#"{"$indexOfBytes": ["abc", "", 3]}"#, "3");
    gives(r#"{"$indexOfBytes": ["abc", "b", 4]}"#, "-1");
    gives(r#"{"$indexOfCP": ["aéb", "b"]}"#, "2");
    gives(r#"{"$indexOfCP": ["aéb", "b", 0, 2]}"#, "-1");
    gives(r#"{"$indexOfCP": ["aéaé", "aé", 1]}"#, "2");
    gives(r#"{"$indexOfCP": ["aéaé", "aé", 1, 3]}"#, "2");
    gives(r#"{"$indexOfCP": ["abc", "b", 7]}"#, "-1");
    gives(r#"{"$indexOfCP": ["", ""]}"#, "0");
    // Compared at every place it took minutes.
    let (hay, needle) = ("a".repeat(4_000_000), format!("{}b", "a".repeat(2_000_000)));
    for operator in ["$indexOfBytes", "$indexOfCP"] {
        let at = eval_in(doc! {operator: [(hay.as_str()), (needle.as_str())]}, &DocBuf::new());
        assert_eq!(at.unwrap(), Some(Value::Int32(-1)), "{operator}");
    }
}

#[test]
fn values_are_found_in_arrays_of_any_length() {
    gives(r#"{"$in": [20, {"$range": [0, 21]}]}"#, "true");
    gives(r#"{"$in": [21, {"$range": [0, 21]}]}"#, "false");
    gives(r#"{"$indexOfArray": [{"$range": [0, 30]}, 19]}"#, "19");
    gives(r#"{"$indexOfArray": [{"$range": [0, 30]}, 19, 19]}"#, "19");
    gives(r#"{"$indexOfArray": [{"$range": [0, 30]}, 19, 20]}"#, "-1");
    gives(r#"{"$indexOfArray": [{"$range": [0, 30]}, 19, 3, 19]}"#, "-1");
    gives(r#"{"$indexOfArray": [[1, 2], 1, 7]}"#, "-1");
    gives(r#"{"$indexOfArray": [[1, 2], "$absent"]}"#, "-1");
}

/// What is short to write and long to do counts as work on its way.
#[test]
fn long_arrays_and_texts_are_interrupted() {
    let long = || doc! {"$range": [0, 200_000]};
    let nothing = DocBuf::new();
    for operator in ["$setDifference", "$setIsSubset", "$setEquals", "$setIntersection"] {
        is_interrupted(1, doc! {operator: [(long()), (long())]}, &nothing);
    }
    for operator in ["$sum", "$avg", "$max", "$stdDevPop"] {
        is_interrupted(1, doc! {operator: (long())}, &nothing);
    }
    is_interrupted(1, doc! {"$maxN": {"n": 2, "input": (long())}}, &nothing);
    is_interrupted(
        1,
        doc! {"$percentile": {"p": [0.5], "input": (long()), "method": "approximate"}},
        &nothing,
    );
    is_interrupted(1, doc! {"$in": [(-1), (long())]}, &nothing);
    is_interrupted(1, doc! {"$indexOfArray": [(long()), (-1)]}, &nothing);
    is_interrupted(1, doc! {"$split": [("a".repeat(200_000)), "a"]}, &nothing);
    let format = "%Y".repeat(200_000);
    is_interrupted(1, doc! {"$dateToString": {"date": (Value::DateTime(0)), "format": format}}, &nothing);
    let columns: Vec<Value> = (0..20).map(|_| Value::Array(Vec::new())).chain([long().into()]).collect();
    is_interrupted(8, doc! {"$zip": {"inputs": columns, "useLongestLength": true}}, &nothing);
}

#[test]
fn parsing_is_interrupted() {
    let items: Vec<Value> = (0..200_000).map(Value::Int32).collect();
    is_interrupted(1, doc! {"a": items}, &DocBuf::new());
}

/// The last field of a wide document is far from the first.
#[test]
fn fields_that_are_passed_over_count_as_work() {
    let mut wide: Document = (0..100_000).map(|i| (format!("f{i}"), Value::Int32(i))).collect();
    wide.push("z", 1);
    let root = wide.to_doc_buf();
    let sum = |path: &str| doc! {"$add": (vec![Value::from(path); 1000])};
    is_interrupted(8, sum("$z"), &root);
    is_interrupted(8, sum("$$ROOT.z"), &root);
    is_interrupted(8, doc! {"$let": {"vars": {"v": "$$ROOT"}, "in": (sum("$$v.z"))}}, &root);
    assert_eq!(eval_in(doc! {"$add": ["$z", "$f99999"]}, &root).unwrap(), Some(Value::Int32(100_000)));
}

#[test]
fn variables_hide_those_around_them_and_may_be_many() {
    gives(
        r#"{"$let": {"vars": {"a": 1, "c": 3}, "in": {"$let": {"vars": {"a": 2, "b": "$$a"}, "in": ["$$a", "$$b", "$$c"]}}}}"#,
        "[2, 1, 3]",
    );
    fails(r#"{"$let": {"vars": {"a": 1, "b": "$$a"}, "in": 1}}"#, 17276);
    // With a copy of all names for each of them it took minutes.
    let vars: Document = (0..100_000).map(|i| (format!("v{i}"), Value::Int32(i))).collect();
    let sum = doc! {"$let": {"vars": vars, "in": {"$add": ["$$v1", "$$v99999"]}}};
    assert_eq!(eval_in(sum, &DocBuf::new()).unwrap(), Some(Value::Int32(100_000)));
}

#[test]
fn the_positions_of_variables_are_those_of_their_names() {
    let mut outer = Variables::with_names(["a", "b"]);
    let inner = outer.bind_all(["c", "a"]).bind("d");
    assert_eq!(inner.names(), ["a", "b", "c", "a", "d"]);
    assert_eq!(inner.len(), 5);
    outer.push("e");
    assert_eq!((outer.names(), inner.len()), (vec!["a".to_string(), "b".into(), "e".into()], 5));
}
