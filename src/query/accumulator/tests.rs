//! Every accumulator: merging the partials of a divided input gives what the whole input gives.

use super::*;
use document::{DocBuf, doc, extended_json};

fn docs() -> Vec<DocBuf> {
    (0..40i32)
        .map(|i| {
            let v = match i % 5 {
                0 => Value::Int32(i),
                1 => Value::Double(i as f64 * 0.5),
                2 => Value::Int64(i as i64 - 20),
                3 => Value::Null,
                _ => Value::Int32(i * 7 % 11),
            };
            doc! {"v": v, "o": {"k": (i % 3), "n": i}, "a": [i, (i % 4)], "s": ((i * 13) % 17)}.to_doc_buf()
        })
        .collect()
}

fn parsed(spec: &str) -> Parsed {
    parse("f", &extended_json::from_str(spec).unwrap(), &Variables::new()).unwrap()
}

fn feed(p: &Parsed, docs: &[DocBuf]) -> Box<dyn Accumulator> {
    let mut vars = Vars::new(0);
    let mut state = p.start(&Value::Null, &mut vars).unwrap();
    for d in docs {
        state.add(p.eval(d.doc(), &mut vars).unwrap()).unwrap();
    }
    state
}

const SPECS: [&str; 20] = [
    r#"{"$sum": "$v"}"#,
    r#"{"$avg": "$v"}"#,
    r#"{"$count": {}}"#,
    r#"{"$min": "$v"}"#,
    r#"{"$max": "$v"}"#,
    r#"{"$first": "$v"}"#,
    r#"{"$last": "$v"}"#,
    r#"{"$push": "$v"}"#,
    r#"{"$addToSet": "$v"}"#,
    r#"{"$concatArrays": "$a"}"#,
    r#"{"$setUnion": "$a"}"#,
    r#"{"$mergeObjects": "$o"}"#,
    r#"{"$firstN": {"n": 3, "input": "$v"}}"#,
    r#"{"$lastN": {"n": 3, "input": "$v"}}"#,
    r#"{"$minN": {"n": 3, "input": "$v"}}"#,
    r#"{"$maxN": {"n": 3, "input": "$v"}}"#,
    r#"{"$topN": {"n": 3, "sortBy": {"s": 1}, "output": "$o.n"}}"#,
    r#"{"$bottomN": {"n": 3, "sortBy": {"s": 1}, "output": "$o.n"}}"#,
    r#"{"$top": {"sortBy": {"s": -1, "o.n": 1}, "output": "$o.n"}}"#,
    r#"{"$percentile": {"p": [0.1, 0.5, 0.9], "input": "$v", "method": "approximate"}}"#,
];

#[test]
fn merged_partials_equal_the_whole() {
    let docs = docs();
    for spec in SPECS {
        let p = parsed(spec);
        let whole = feed(&p, &docs).finish();
        for cut in [0, 1, 17, 40] {
            let mut merged = p.start(&Value::Null, &mut Vars::new(0)).unwrap();
            for half in [&docs[..cut], &docs[cut..]] {
                // Through bytes, as on the wire.
                let sent = feed(&p, half).export().to_holder();
                merged.merge(sent.get("").unwrap().to_value()).unwrap();
            }
            assert_eq!(merged.finish(), whole, "{spec} cut at {cut}");
        }
    }
}

#[test]
fn deviation_merges_to_within_rounding() {
    let docs = docs();
    let p = parsed(r#"{"$stdDevSamp": "$v"}"#);
    let Value::Double(whole) = feed(&p, &docs).finish() else { panic!("not a double") };
    let mut merged = p.start(&Value::Null, &mut Vars::new(0)).unwrap();
    for half in [&docs[..9], &docs[9..]] {
        merged.merge(feed(&p, half).export()).unwrap();
    }
    let Value::Double(d) = merged.finish() else { panic!("not a double") };
    assert!((d - whole).abs() < 1e-9, "{d} {whole}");
}

#[test]
fn wrong_specifications_have_the_server_codes() {
    let code = |spec: &str| {
        parse("f", &extended_json::from_str(spec).unwrap(), &Variables::new())
            .map(|p| p.name)
            .unwrap_err()
            .code
    };
    assert_eq!(code("1"), 40234);
    assert_eq!(code(r#"{"$nope": 1}"#), 15952);
    assert_eq!(code(r#"{"$sum": 1, "$avg": 1}"#), 40238);
    assert_eq!(code(r#"{"$sum": [1, 2]}"#), 40237);
    assert_eq!(code(r#"{"$firstN": {"n": 0, "input": 1}}"#), 7548606);
    assert_eq!(code(r#"{"$accumulator": {}}"#), 4544705);
}
