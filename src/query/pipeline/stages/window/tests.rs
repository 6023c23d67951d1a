//! Pipelines with windows, fills and densified fields over given documents.

use crate::QueryContext;
use crate::pipeline::account::{Kind, Spills, Use};
use crate::pipeline::spill::{Space, tests::MemorySpace};
use crate::pipeline::{Context, Namespace, Run, parse};
use document::{DocBuf, Document, Result, Value, array, doc, meter};
use std::sync::Arc;

fn run(stage: Document, input: &[Document]) -> Result<Vec<Document>> {
    let ctx = Context::new(Namespace::new("d", "c"), QueryContext::at(0));
    let pipeline = parse(&[Value::from(stage)], &ctx)?;
    let input = input.iter().map(Document::to_doc_buf).collect();
    let out = pipeline.run_local(input, &Run::new(&ctx))?;
    Ok(out.iter().map(|d| d.doc().to_document()).collect())
}

/// The field `r` of each result, in the order of `_id`.
fn results(stage: Document, input: &[Document]) -> Vec<Value> {
    let mut out = run(stage, input).expect("a result");
    out.sort_by_key(|d| d.get_i64("_id"));
    out.iter().map(|d| d.get("r").cloned().unwrap_or(Value::Undefined)).collect()
}

fn window(function: Document, window: Document) -> Document {
    let mut r = function;
    r.push("window", window);
    doc! { "$setWindowFields": { "partitionBy": "$p", "sortBy": { "t": 1 }, "output": { "r": (r) } } }
}

fn series() -> Vec<Document> {
    vec![
        doc! { "_id": 1i64, "p": "a", "t": 1, "v": 10 },
        doc! { "_id": 2i64, "p": "b", "t": 1, "v": 7 },
        doc! { "_id": 3i64, "p": "a", "t": 2, "v": 20 },
        doc! { "_id": 4i64, "p": "a", "t": 5, "v": 40 },
    ]
}

fn ints(values: &[i32]) -> Vec<Value> {
    values.iter().map(|v| Value::Int32(*v)).collect()
}

#[test]
fn sums_over_positions_stay_in_the_partition() {
    let cumulative = window(doc! { "$sum": "$v" }, doc! { "documents": ["unbounded", "current"] });
    assert_eq!(results(cumulative, &series()), ints(&[10, 7, 30, 70]));
    let sliding = window(doc! { "$sum": "$v" }, doc! { "documents": [(-1), 0] });
    assert_eq!(results(sliding, &series()), ints(&[10, 7, 30, 60]));
    let ahead = window(doc! { "$sum": "$v" }, doc! { "documents": [1, 5] });
    assert_eq!(results(ahead, &series()), ints(&[60, 0, 40, 0]));
}

#[test]
fn ranges_look_at_values() {
    let near = window(doc! { "$sum": "$v" }, doc! { "range": [(-3), 1] });
    assert_eq!(results(near, &series()), ints(&[30, 7, 30, 60]));
}

/// In a range, "current" is the document itself, whatever others have its value.
#[test]
fn the_current_end_of_a_range_leaves_out_ties_on_its_side() {
    let ties: Vec<Document> =
        [(1i64, 100), (2, 100), (3, 101)].map(|(i, t)| doc! { "_id": i, "t": t }).to_vec();
    let pushed = |bounds: Value| results(window(doc! { "$push": "$_id" }, doc! { "range": bounds }), &ties);
    let lists = |lists: &[&[i64]]| -> Vec<Value> {
        lists.iter().map(|l| Value::Array(l.iter().map(|n| Value::Int64(*n)).collect())).collect()
    };
    assert_eq!(pushed(array!["current", "current"]), lists(&[&[1], &[2], &[3]]));
    assert_eq!(pushed(array!["current", 1]), lists(&[&[1, 2, 3], &[2, 3], &[3]]));
    assert_eq!(pushed(array!["unbounded", "current"]), lists(&[&[1], &[1, 2], &[1, 2, 3]]));
    assert_eq!(pushed(array![0, 0]), lists(&[&[1, 2], &[1, 2], &[3]]));
    assert_eq!(pushed(array![(-1), "current"]), lists(&[&[1], &[1, 2], &[1, 2, 3]]));
}

#[test]
fn collected_values_grow_with_the_frame() {
    let pushed = window(doc! { "$push": "$v" }, doc! { "documents": ["unbounded", "current"] });
    let expected = vec![array![10], array![7], array![10, 20], array![10, 20, 40]];
    assert_eq!(results(pushed, &series()), expected);
}

#[test]
fn ranks_share_places_by_their_kind() {
    let ties = [doc! { "_id": 1i64, "t": 1 }, doc! { "_id": 2i64, "t": 1 }, doc! { "_id": 3i64, "t": 4 }];
    let of = |name: &str| {
        let stage = doc! { "$setWindowFields": { "sortBy": { "t": 1 }, "output": { "r": { name: {} } } } };
        results(stage, &ties)
    };
    assert_eq!(of("$rank"), ints(&[1, 1, 3]));
    assert_eq!(of("$denseRank"), ints(&[1, 1, 2]));
    assert_eq!(of("$documentNumber"), ints(&[1, 2, 3]));
}

/// An array is sorted by one of its elements, and ties are of those.
#[test]
fn arrays_rank_by_the_element_that_sorts_them() {
    let input =
        [doc! { "_id": 1i64, "t": array![3, 1] }, doc! { "_id": 2i64, "t": 1 }, doc! { "_id": 3i64, "t": 3 }];
    let by = |order: i32| {
        let stage =
            doc! { "$setWindowFields": { "sortBy": { "t": order }, "output": { "r": { "$rank": {} } } } };
        results(stage, &input)
    };
    assert_eq!(by(1), ints(&[1, 1, 3]));
    assert_eq!(by(-1), ints(&[1, 3, 1]));
}

#[test]
fn a_shift_past_the_end_gives_the_default() {
    let output = doc! { "r": { "$shift": { "output": "$v", "by": (-1), "default": "none" } } };
    let stage =
        doc! { "$setWindowFields": { "partitionBy": "$p", "sortBy": { "t": 1 }, "output": (output) } };
    let expected = vec![Value::from("none"), Value::from("none"), Value::Int32(10), Value::Int32(20)];
    assert_eq!(results(stage, &series()), expected);
}

#[test]
fn gaps_are_filled_by_line_or_by_the_value_before() {
    let gaps = [
        doc! { "_id": 1i64, "t": 1, "r": 10 },
        doc! { "_id": 2i64, "t": 2 },
        doc! { "_id": 3i64, "t": 3, "r": 20 },
    ];
    let fill = |method: &str| {
        results(doc! { "$fill": { "sortBy": { "t": 1 }, "output": { "r": { "method": method } } } }, &gaps)
    };
    assert_eq!(fill("linear"), vec![Value::Int32(10), Value::Double(15.0), Value::Int32(20)]);
    assert_eq!(fill("locf"), ints(&[10, 10, 20]));
    let constant = doc! { "$fill": { "output": { "r": { "value": 0 } } } };
    assert_eq!(results(constant, &gaps), ints(&[10, 0, 20]));
    let both = doc! { "r": { "value": "$t" }, "t": { "method": "locf" } };
    let carried = doc! { "$fill": { "sortBy": { "_id": 1 }, "output": both } };
    let input = [doc! { "_id": 1i64, "t": 5 }, doc! { "_id": 2i64 }];
    assert_eq!(results(carried, &input), ints(&[5, 5]), "a constant sees what was carried on");
}

#[test]
fn there_is_no_line_between_a_number_and_a_date() {
    let input = [
        doc! { "_id": 1i64, "t": 1, "r": 10 },
        doc! { "_id": 2i64, "t": 2 },
        doc! { "_id": 3i64, "t": Value::DateTime(3), "r": 20 },
    ];
    let fill = doc! { "$fill": { "sortBy": { "t": 1 }, "output": { "r": { "method": "linear" } } } };
    assert_eq!(run(fill, &input).expect_err("a refusal").code, document::codes::TYPE_MISMATCH);
}

#[test]
fn densify_makes_what_each_partition_lacks() {
    let stage = |bounds: Value| {
        doc! { "$densify": { "field": "t", "partitionByFields": ["p"], "range": { "step": 2, "bounds": (bounds) } } }
    };
    let made = |bounds: Value| {
        let out = run(stage(bounds), &series()).expect("a result");
        let new = out.iter().filter(|d| d.get("_id").is_none());
        let mut pairs: Vec<(String, i64)> = new
            .map(|d| (d.get_str("p").unwrap_or_default().to_string(), d.get_i64("t").unwrap_or_default()))
            .collect();
        pairs.sort();
        pairs
    };
    let pair = |p: &str, t: i64| (p.to_string(), t);
    assert_eq!(made("full".into()), vec![pair("a", 3), pair("b", 3), pair("b", 5)]);
    assert_eq!(made("partition".into()), vec![pair("a", 3)]);
    assert_eq!(made(array![0, 4]), vec![pair("a", 0), pair("b", 0), pair("b", 2)]);
}

#[test]
fn refusals_have_the_codes_of_the_real_server() {
    let refused = |stage: Document| run(stage, &series()).expect_err("a refusal").code;
    let bounds = |w: Document| refused(window(doc! { "$sum": "$v" }, w));
    assert_eq!(bounds(doc! { "documents": [1, (-1)] }), 5339900);
    assert_eq!(bounds(doc! { "documents": [1.5, 2] }), 9);
    assert_eq!(bounds(doc! { "range": [(-1), 0], "unit": "day" }), 5429513);
    let whole = |key: Value, w: Document| {
        run(window(doc! { "$sum": "$v" }, w), &[doc! { "_id": 1i64, "t": key }]).expect_err("a refusal").code
    };
    let unbounded = doc! { "range": ["unbounded", "unbounded"] };
    assert_eq!(whole(Value::Null, unbounded.clone()), 5429414);
    assert_eq!(whole(Value::DateTime(0), unbounded), 5429413);
    assert_eq!(whole(Value::Int32(1), doc! { "range": ["unbounded", "current"], "unit": "day" }), 5429513);
    let unsorted = doc! { "$sum": "$v", "window": { "documents": [(-1), 0] } };
    assert_eq!(refused(doc! { "$setWindowFields": { "output": { "r": (unsorted) } } }), 5339901);
    assert_eq!(refused(doc! { "$setWindowFields": { "output": { "r": { "$mergeObjects": "$v" } } } }), 9);
    assert_eq!(refused(doc! { "$_internalSetWindowFields": { "output": {} } }), 40324);
    let step = doc! { "field": "t", "range": { "step": 0, "bounds": "full" } };
    assert_eq!(refused(doc! { "$densify": (step) }), 5733401);
}

/// What the stage alone wrote to files over one partition that is sorted already.
fn spills_of(output: Document, input: &[Document], limit: usize) -> Use {
    let spills = Arc::new(Spills::default());
    run_within(output, input, limit, Some(spills.clone())).expect("a result");
    spills.of(Kind::SetWindowFields)
}

/// Runs the stage alone with a limit, and without disk where nobody is to be told of spills.
fn run_within(
    output: Document,
    input: &[Document],
    limit: usize,
    spills: Option<Arc<Spills>>,
) -> Result<Vec<DocBuf>> {
    let mut ctx = Context::new(Namespace::new("d", "c"), QueryContext::at(0));
    ctx.from_router = true;
    let spec = doc! { "$_internalSetWindowFields": { "sortBy": { "_id": 1 }, "output": output } };
    let pipeline = parse(&[Value::from(spec)], &ctx).expect("a pipeline");
    let mut run = Run::new(&ctx);
    run.limits.set_window_fields = limit;
    run.spill = spills.as_ref().map(|_| Arc::new(MemorySpace::default()) as Arc<dyn Space>);
    run.account.tell(spills.into_iter().collect());
    let out = pipeline.run_local(input.iter().map(Document::to_doc_buf).collect(), &run)?;
    assert_eq!((out.len(), run.account.bytes()), (input.len(), 0));
    Ok(out)
}

/// Every document gets all values up to its own.
#[test]
fn computed_fields_count_towards_the_limit_of_their_partition() {
    let input: Vec<Document> = (0..200).map(|i| doc! { "_id": i }).collect();
    let all = doc! { "$push": "$_id", "window": { "documents": ["unbounded", "current"] } };
    let output = doc! { "a": (all.clone()), "b": all };
    let limit = 100_000;
    let used = spills_of(output.clone(), &input, limit);
    assert_eq!(used.spilled_records, 600, "the documents and both fields: {used:?}");
    let spills = Some(Arc::new(Spills::default()));
    let spilled = run_within(output.clone(), &input, limit, spills).expect("on disk");
    assert_eq!(spilled, run_within(output.clone(), &input, 100 * limit, None).expect("in memory"));
    let refused = run_within(output, &input, limit, None).expect_err("no disk");
    assert_eq!(refused.code, document::codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
}

/// Strings count as inputs of a sum and not in it, so that the inputs are what exceeds the limit.
#[test]
fn the_inputs_of_a_computed_field_count_towards_the_limit_of_the_partition() {
    let input: Vec<Document> = (0..200).map(|i| doc! { "_id": i }).collect();
    let output = doc! { "a": { "$sum": { "$concat": ["x".repeat(1000), { "$toString": "$_id" }] } } };
    let limit = 100_000;
    let refused = run_within(output.clone(), &input, limit, None).expect_err("no disk");
    assert_eq!(refused.code, document::codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED);
    let used = spills_of(output.clone(), &input, limit);
    assert_eq!(used.spilled_records, 400, "the documents and the computed field: {used:?}");
    let spilled = run_within(output.clone(), &input, limit, Some(Arc::default())).expect("on disk");
    assert_eq!(spilled, run_within(output, &input, 10 * limit, None).expect("in memory"));
}

/// A document takes 64 bytes beside its own.
#[test]
fn a_spilled_partition_is_written_to_its_end_and_each_document_once() {
    let input: Vec<Document> = (0..150).map(|i| doc! { "_id": i, "v": 1, "s": "x".repeat(100) }).collect();
    let documents: usize = input.iter().map(|d| d.to_doc_buf().bytes().len() + 64).sum();
    let column: usize = (0..150).map(|i| doc! { "v": i }.to_doc_buf().bytes().len() + 64).sum();
    let sum = doc! { "$sum": "$v", "window": { "documents": ["unbounded", "current"] } };
    let used = spills_of(doc! { "a": (sum.clone()), "b": sum }, &input, documents / 4 * 3);
    assert_eq!(used.spilled_records, 150 * 3, "{used:?}");
    assert_eq!(used.spilled_bytes as usize, documents + column * 2, "{used:?}");
}

/// Frames that reach from each document to the end are as long as the partition, time and again: work of the square.
#[test]
fn the_work_over_long_frames_is_counted() {
    let input: Vec<Document> = (0..3000).map(|i| doc! { "_id": i, "v": i % 10, "w": i }).collect();
    let rest = doc! { "documents": ["current", "unbounded"] };
    let until = doc! { "documents": ["unbounded", "current"] };
    let functions = [
        (doc! { "$sum": "$v" }, rest.clone()),
        (doc! { "$covariancePop": ["$v", "$w"] }, rest.clone()),
        (doc! { "$integral": { "input": "$v" } }, rest),
        (doc! { "$median": { "input": "$v", "method": "approximate" } }, until.clone()),
        (doc! { "$push": "$v" }, until),
        (doc! { "$push": "$v" }, doc! { "documents": ["unbounded", "unbounded"] }),
    ];
    for (mut function, window) in functions {
        function.push("window", window);
        let shown = format!("{function:?}");
        let stage = doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "r": (function) } } };
        let e = meter::within(&mut meter::Oversight::default(), || meter::bounded(8, || run(stage, &input)));
        assert_eq!(e.err().map(|e| e.code), Some(meter::OVERRUN), "{shown}");
    }
}

/// The input is small and each result is long: they are refused as they are made, and not when all two million bytes are there.
#[test]
fn the_results_of_a_field_are_charged_as_they_are_made() {
    let input: Vec<Document> = (0..200).map(|i| doc! { "_id": i }).collect();
    let long = Value::String("x".repeat(10_000));
    let output = doc! { "a": { "$shift": { "output": "$_id", "by": 1000, "default": long } } };
    let refused = run_within(output, &input, 100_000, None).expect_err("no disk");
    assert!(refused.message.contains("holds 1"), "not at the first that was too many: {}", refused.message);
}

/// Whether a deviation has a value is asked of all values of its frame.
#[test]
fn the_work_over_frames_without_a_deviation_is_counted() {
    let v = |i| if i == 5999 { f64::NAN } else { f64::from(i) };
    let input: Vec<Document> = (0..6000).map(|i| doc! { "_id": i, "v": (v(i)) }).collect();
    let deviation = doc! { "$stdDevPop": "$v", "window": { "documents": ["current", "unbounded"] } };
    let stage = doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "r": deviation } } };
    let e = meter::within(&mut meter::Oversight::default(), || meter::bounded(40, || run(stage, &input)));
    assert_eq!(e.err().map(|e| e.code), Some(meter::OVERRUN));
}
