//! Buckets give back what went in, in little room, and refuse what they do not hold.

use super::*;
use document::{DocBuf, Document, ObjectId, Value, doc};

fn options() -> Options {
    Options::of_document(&doc! { "timeField": "t", "metaField": "m" }).unwrap()
}

fn measurement(i: i64) -> DocBuf {
    let mut id = [7; 12];
    id[8..].copy_from_slice(&(i as u32).to_be_bytes());
    doc! {
        "_id": Value::ObjectId(ObjectId(id)), "t": Value::DateTime(1_700_000_000_000 + i * 1000), "m": { "s": "sensor-1", "b": 2 },
        "temperature": 20.0 + (i % 50) as f64 / 10.0, "status": "ok",
    }
    .to_doc_buf()
}

fn rows_of(list: &[DocBuf]) -> (DocBuf, Vec<DocBuf>) {
    let split: Vec<_> = list.iter().map(|d| bucket::split(d.doc(), &options()).unwrap()).collect();
    let meta = DocBuf::from_validated(split[0].meta.bytes().to_vec());
    (meta, split.into_iter().map(|m| m.row).collect())
}

fn filled(n: i64) -> (Vec<DocBuf>, DocBuf) {
    let list: Vec<_> = (0..n).map(measurement).collect();
    let (meta, rows) = rows_of(&list);
    let mut made: Option<DocBuf> = None;
    for chunk in rows.chunks(37) {
        let chunk: Vec<_> = chunk.iter().map(DocBuf::doc).collect();
        made = Some(match &made {
            None => bucket::build(ObjectId([1; 12]), meta.doc(), &chunk, &options()).unwrap(),
            Some(old) => bucket::append(old.doc(), &chunk, &options()).unwrap(),
        });
    }
    (list, made.unwrap())
}

#[test]
fn a_bucket_gives_back_its_measurements_by_time() {
    for n in [1, 36, 130, 1000] {
        let (list, made) = filled(n);
        let rows = bucket::rows_by_time(made.doc(), &options()).unwrap();
        let back: Vec<DocBuf> =
            rows.iter().map(|row| bucket::measurement(row.doc(), made.doc(), &options())).collect();
        assert_eq!(back.len(), list.len());
        for (a, b) in list.iter().zip(&back) {
            let (mut a, b) = (a.to_document(), b.to_document());
            a.insert("m", doc! { "b": 2, "s": "sensor-1" });
            let get = |d: &Document, name: &str| d.get(name).cloned();
            for name in ["_id", "t", "m", "temperature", "status"] {
                assert_eq!(get(&a, name), get(&b, name));
            }
        }
    }
}

#[test]
fn a_full_bucket_takes_less_than_a_third_of_its_measurements() {
    let (list, made) = filled(1000);
    let plain: usize = list.iter().map(|d| d.bytes().len()).sum();
    assert!(made.bytes().len() * 3 < plain, "{} of {plain}", made.bytes().len());
}

#[test]
fn a_bucket_knows_its_window_and_its_limits() {
    let (_, made) = filled(10);
    let (meta, _) = rows_of(&[measurement(0)]);
    let window = options().window(1_700_000_000_000);
    let room = bucket::room(made.doc(), meta.doc(), window, &options()).unwrap();
    assert_eq!(room.rows, bucket::ROWS_MAX - 10);
    assert!(bucket::room(made.doc(), meta.doc(), window + 1, &options()).is_none());
    assert!(bucket::room(made.doc(), document::Doc::empty(), window, &options()).is_none());
    let (_, full) = filled(1000);
    assert!(bucket::room(full.doc(), meta.doc(), window, &options()).is_none());
    let control = made.to_document();
    let min = control.get_path("control.min.t");
    assert_eq!(min, Some(&Value::DateTime(1_699_999_980_000)), "rounded down to the minute");
    assert_eq!(control.get_path("control.max.temperature"), Some(&Value::Double(20.9)));
}

#[test]
fn control_speaks_of_time_and_of_a_bounded_number_of_fields() {
    let wide = |order: &mut dyn Iterator<Item = i32>, by: i32| {
        let mut d: Document = order.map(|i| (format!("f{i}"), Value::Int32(i + by))).collect();
        d.push("t", Value::DateTime(1_700_000_000_000));
        d.to_doc_buf()
    };
    let rows = [wide(&mut (0..100_000), 0), wide(&mut (0..100_000).rev(), 5)];
    let meta = document::Doc::empty();
    let made = bucket::build(ObjectId([1; 12]), meta, &rows.each_ref().map(DocBuf::doc), &options()).unwrap();
    assert_eq!(bucket::rows(made.doc()).unwrap(), rows);
    let control = made.to_document();
    let side = |name: &str| control.get_path(name).and_then(Value::as_document).unwrap();
    for (side, f7) in [(side("control.min"), 7), (side("control.max"), 12)] {
        assert!(side.len() <= 1000, "{} fields", side.len());
        assert_eq!(side.get("f7"), Some(&Value::Int32(f7)));
        assert!(side.contains_key("t"));
    }
}

#[test]
fn a_bucket_of_long_values_holds_them_once() {
    let mut row = doc! { "t": Value::DateTime(0), "short": 1, "long": "x".repeat(1 << 20) };
    row.push("n".repeat(1 << 20), 1);
    let row = row.to_doc_buf();
    let made = bucket::build(ObjectId([1; 12]), document::Doc::empty(), &[row.doc()], &options()).unwrap();
    assert!(made.bytes().len() < row.bytes().len() + 1000, "{}", made.bytes().len());
    let min = made.to_document().get_path("control.min").and_then(Value::as_document).cloned();
    assert_eq!(min, Some(doc! { "t": Value::DateTime(0), "short": 1 }));
}

#[test]
fn a_block_that_claims_what_it_does_not_hold_is_refused() {
    let (_, made) = filled(200);
    let whole = made.to_document();
    let Some(Value::Array(blocks)) = whole.get_path("data.blocks") else { panic!("no blocks") };
    let Value::Binary(good) = &blocks[0] else { panic!("no binary") };
    for at in 0..good.bytes.len() {
        for bit in [0x01, 0x80] {
            let mut bad = good.clone();
            bad.bytes[at] ^= bit;
            let mut d = whole.clone();
            d.insert("data", doc! { "blocks": [Value::Binary(bad)] });
            // Whatever comes of it is valid or an error; nothing panics.
            if let Ok(rows) = bucket::rows(d.to_doc_buf().doc()) {
                assert!(rows.len() <= 1000);
            }
        }
    }
    let huge = [2u8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2];
    let mut d = whole.clone();
    let block = Value::Binary(document::value::Binary { subtype: 0, bytes: huge.to_vec() });
    d.insert("data", doc! { "blocks": [block] });
    assert!(bucket::rows(d.to_doc_buf().doc()).is_err());
}

#[test]
fn what_the_blocks_of_a_bucket_hold_together_is_bounded() {
    let bucket_of = |blocks: Vec<(u32, Vec<u8>)>| {
        let packed = blocks.into_iter().map(|(rows, raw)| {
            let mut bytes = vec![1u8];
            bytes.extend_from_slice(&rows.to_le_bytes());
            bytes.extend_from_slice(&(raw.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&zstd::bulk::compress(&raw, 3).unwrap());
            Value::Binary(document::value::Binary { subtype: 0, bytes })
        });
        let data = doc! { "blocks": Value::Array(packed.collect()) };
        doc! { "_id": Value::ObjectId(ObjectId([1; 12])), "control": { "version": 1001 }, "data": data }
            .to_doc_buf()
    };
    let rows = |n: usize| (n as u32, doc! {}.to_vec().repeat(n));
    let count = |blocks| bucket::rows(bucket_of(blocks).doc()).map(|rows| rows.len()).ok();
    assert_eq!(count(vec![rows(900), rows(100)]), Some(1000));
    assert_eq!(count(vec![rows(1001)]), None);
    assert_eq!(count(vec![rows(900), rows(101)]), None);
    let long = |bytes: usize| (1, doc! { "x": "x".repeat(bytes) }.to_vec());
    assert_eq!(count(vec![long(9 << 20)]), Some(1));
    assert_eq!(count(vec![long(9 << 20), long(9 << 20)]), None);
}

#[test]
fn a_measurement_has_the_shard_key_of_the_bucket_it_begins() {
    let measurement = doc! { "_id": 1, "m": { "b": 1, "a": 2 }, "t": (Value::DateTime(123_456)) };
    let fields = bucket::key_fields(measurement.to_doc_buf().doc(), &options()).unwrap().doc().to_document();
    let split = bucket::split(measurement.to_doc_buf().doc(), &options()).unwrap();
    let begun = bucket::build(ObjectId([1; 12]), split.meta.doc(), &[split.row.doc()], &options()).unwrap();
    assert_eq!(fields.get("meta"), begun.doc().to_document().get("meta"));
    assert_eq!(fields.get_path("control.min.t"), begun.doc().to_document().get_path("control.min.t"));
}

#[test]
fn a_bucket_that_loses_its_first_rows_keeps_its_least_time() {
    let row = |millis: i64| doc! { "_id": millis, "t": (Value::DateTime(millis)), "v": millis }.to_doc_buf();
    let rows = [row(60_000), row(180_000)];
    let none = Document::new().to_doc_buf();
    let whole =
        bucket::build(ObjectId([1; 12]), none.doc(), &[rows[0].doc(), rows[1].doc()], &options()).unwrap();
    let left = bucket::rebuilt(whole.doc(), &[rows[1].doc()], &options()).unwrap().doc().to_document();
    assert_eq!(left.get_path("control.min.t"), Some(&Value::DateTime(60_000)));
    assert_eq!(left.get_path("control.max.t"), Some(&Value::DateTime(180_000)));
    assert_eq!(left.get_path("control.min.v"), Some(&Value::Int64(180_000)));
}
