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

/// With a place made in the middle for each it took minutes.
#[test]
fn any_number_of_entries_is_kept_in_order() {
    let n = 200_003i64;
    let p = parsed(r#"{"$topN": {"n": 100000000, "sortBy": {"s": 1}, "output": "$s"}}"#);
    let docs: Vec<DocBuf> = (0..n).map(|i| doc! {"s": (i * 7919 % n)}.to_doc_buf()).collect();
    let Value::Array(top) = feed(&p, &docs).finish() else { panic!("no array") };
    assert!(top.iter().map(|v| v.as_i64().unwrap()).eq(0..n));
}

#[test]
fn of_equal_entries_the_first_comes_first() {
    let docs: Vec<DocBuf> = [(1, 0), (0, 1), (1, 2), (1, 3), (0, 4)]
        .map(|(s, n)| doc! {"s": s, "n": n, "v": (if n % 2 == 0 { Value::Int32(s) } else { Value::Int64(s.into()) })})
        .map(|d| d.to_doc_buf())
        .into();
    let gives = |spec: &str, expected: Vec<Value>| {
        let p = parsed(spec);
        assert_eq!(feed(&p, &docs).current(), Value::Array(expected.clone()), "{spec}");
        assert_eq!(feed(&p, &docs).finish(), Value::Array(expected), "{spec}");
    };
    let ints = |all: &[i32]| all.iter().map(|i| Value::Int32(*i)).collect::<Vec<_>>();
    gives(r#"{"$topN": {"n": 3, "sortBy": {"s": 1}, "output": "$n"}}"#, ints(&[1, 4, 0]));
    gives(r#"{"$bottomN": {"n": 3, "sortBy": {"s": 1}, "output": "$n"}}"#, ints(&[0, 2, 3]));
    gives(r#"{"$firstN": {"n": 3, "input": "$n"}}"#, ints(&[0, 1, 2]));
    gives(r#"{"$lastN": {"n": 3, "input": "$n"}}"#, ints(&[2, 3, 4]));
    gives(r#"{"$minN": {"n": 2, "input": "$v"}}"#, vec![Value::Int64(0), Value::Int32(0)]);
    gives(r#"{"$maxN": {"n": 2, "input": "$v"}}"#, ints(&[1, 1]));
}

#[test]
fn a_merged_object_holds_the_values_that_were_not_replaced() {
    let p = parsed(r#"{"$mergeObjects": "$o"}"#);
    let of = |key: &str| doc! {"o": {key: ("x".repeat(10_000))}}.to_doc_buf();
    let held = |docs: &[DocBuf]| feed(&p, docs).memory();
    assert!((10_000..12_000).contains(&held(&[of("a")])));
    assert_eq!(held(&[of("a"), of("a")]), held(&[of("a")]));
    assert_eq!(held(&[of("a"), of("b")]), 2 * held(&[of("a")]));
}
