//! Pipelines on one node, and the same pipelines divided among shards.

use super::*;
use document::{Error, extended_json};
use std::collections::BTreeMap;
use std::sync::Mutex;

fn stages(text: &str) -> Vec<Value> {
    match extended_json::from_str(text).unwrap() {
        Value::Array(stages) => stages,
        one => vec![one],
    }
}

fn context() -> Context {
    let mut query = crate::QueryContext::at(1_700_000_000_000);
    query.seed = 42;
    Context::new(Namespace::new("db", "c"), query)
}

fn documents() -> Vec<DocBuf> {
    (0..60i32)
        .map(|i| {
            let tags = Value::Array((0..i % 4).map(Value::Int32).collect());
            let mut d = Document::new();
            d.push("_id", i);
            d.push("k", format!("g{}", i % 7));
            d.push("n", (i * 37) % 60);
            d.push("x", i as f64 * 0.25);
            d.push("tags", tags);
            d.to_doc_buf()
        })
        .collect()
}

fn show(docs: &[DocBuf]) -> Vec<String> {
    docs.iter().map(|d| extended_json::to_relaxed(&Value::Document(d.to_document()))).collect()
}

fn run_whole(text: &str, input: Vec<DocBuf>) -> Result<Vec<DocBuf>> {
    let ctx = context();
    let p = optimize(parse(&stages(text), &ctx)?, &ctx)?;
    p.run_local(input, &Run::new(&ctx))
}

/// Runs the shards' part on three shards, through BSON as on the wire, and the merge part on what they give.
fn run_split(text: &str, input: Vec<DocBuf>) -> Result<Vec<DocBuf>> {
    let ctx = context();
    let p = optimize(parse(&stages(text), &ctx)?, &ctx)?;
    let parts = split(&p, &ctx)?;
    let mut on_shard = context();
    on_shard.from_router = true;
    let wire = Value::Array(parts.shards.to_array()).to_holder();
    let Some(document::ValueRef::Array(sent)) = wire.get("") else { panic!("no array") };
    let shards = parse(&sent.to_array(), &on_shard)?;
    let mut streams = Vec::new();
    for shard in 0..3 {
        on_shard.query.seed = shard;
        let own = input.iter().filter(|d| d.get("_id").unwrap().as_i64().unwrap() % 3 == shard as i64);
        streams.push(shards.run_local(own.cloned().collect(), &Run::new(&on_shard))?);
    }
    let mut merged: Vec<DocBuf> = streams.into_iter().flatten().collect();
    if let MergeKind::SortKey(_) = parts.merge_kind {
        let mut keyed: Vec<_> = merged.iter().map(sort::take_sort_key).collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        merged = keyed.into_iter().map(|(_, d)| d).collect();
    }
    parts.merge.run_local(merged, &Run::new(&ctx))
}

#[test]
fn divided_pipelines_give_what_whole_ones_give() {
    for text in [
        r#"[{"$match": {"n": {"$gt": 10}}}, {"$sort": {"n": 1}}]"#,
        r#"[{"$sort": {"n": -1}}, {"$skip": 3}, {"$limit": 5}]"#,
        r#"[{"$sort": {"k": 1, "n": 1}}, {"$limit": 4}, {"$project": {"n": 1}}]"#,
        r#"[{"$group": {"_id": "$k", "n": {"$sum": "$n"}, "x": {"$avg": "$x"}, "c": {"$count": {}}, "m": {"$max": "$n"}}}, {"$sort": {"_id": 1}}]"#,
        r#"[{"$group": {"_id": null, "t": {"$topN": {"n": 3, "sortBy": {"n": -1}, "output": "$n"}}}}]"#,
        r#"[{"$unwind": "$tags"}, {"$sortByCount": "$tags"}, {"$sort": {"count": 1}}]"#,
        r#"[{"$match": {"n": {"$lt": 20}}}, {"$count": "total"}]"#,
        r#"[{"$bucket": {"groupBy": "$n", "boundaries": [0, 20, 40], "default": "rest"}}]"#,
        r#"[{"$sort": {"n": 1}}, {"$bucketAuto": {"groupBy": "$n", "buckets": 4}}]"#,
        r#"[{"$addFields": {"y": {"$add": ["$n", 1]}}}, {"$sort": {"y": 1}}, {"$group": {"_id": null, "all": {"$push": "$y"}}}]"#,
        r#"[{"$sort": {"_id": 1}}, {"$facet": {"a": [{"$limit": 2}], "b": [{"$count": "n"}]}}]"#,
        r#"[{"$sort": {"_id": 1}}, {"$redact": {"$cond": [{"$gt": ["$n", 30]}, "$$KEEP", "$$PRUNE"]}}]"#,
    ] {
        let whole = show(&run_whole(text, documents()).unwrap());
        assert!(!whole.is_empty(), "{text}");
        assert_eq!(show(&run_split(text, documents()).unwrap()), whole, "{text}");
    }
}

#[test]
fn what_shards_find_near_a_point_is_merged_by_its_distance() {
    let input: Vec<DocBuf> = (0..30).map(|i| document::doc! { "_id": i, "p": [i, 0] }.to_doc_buf()).collect();
    let found = run_split(r#"[{"$geoNear": {"near": [0, 0], "key": "p"}}]"#, input.clone()).unwrap();
    assert_eq!(show(&found), show(&input));
}

#[test]
fn a_divided_sample_has_its_size_and_no_repetition() {
    let text = r#"[{"$sample": {"size": 7}}]"#;
    for docs in [run_whole(text, documents()).unwrap(), run_split(text, documents()).unwrap()] {
        let mut ids: Vec<i64> = docs.iter().map(|d| d.get("_id").unwrap().as_i64().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 7);
        assert!(docs.iter().all(|d| d.get(sort::SORT_KEY).is_none()));
    }
}

#[track_caller]
fn code(text: &str) -> i32 {
    match run_whole(text, documents()) {
        Err(Error { code, .. }) => code,
        Ok(docs) => panic!("{text} gave {:?}", show(&docs)),
    }
}

#[test]
fn refusals_have_the_server_codes() {
    assert_eq!(code(r#"[{"$nope": 1}]"#), 40324);
    assert_eq!(code(r#"[{"$match": {}, "$limit": 1}]"#), 40323);
    assert_eq!(code(r#"[{"$geoNear": {}}]"#), 5860400);
    assert_eq!(code(r#"[{"$limit": 1}, {"$collStats": {}}]"#), 40602);
    assert_eq!(code(r#"[{"$out": "x"}, {"$limit": 1}]"#), 40601);
    assert_eq!(code(r#"[{"$facet": {"a": [{"$out": "x"}]}}]"#), 40600);
    assert_eq!(code(r#"[{"$limit": 0}]"#), 15958);
    assert_eq!(code(r#"[{"$group": {"a": {"$sum": 1}}}]"#), 15955);
    assert_eq!(code(r#"[{"$group": {"_id": 1, "$willBeMerged": true}}]"#), 40236);
    assert_eq!(code(r#"[{"$_internalAddSortKey": {"a": 1}}]"#), 40324);
    assert_eq!(code(r#"[{"$project": {"a": 1, "b": 0}}]"#), 31254);
    assert_eq!(code(r#"[{"$project": {"a": 1, "a.b": 1}}]"#), 31249);
    assert_eq!(code(r#"[{"$unwind": "tags"}]"#), 28818);
    assert_eq!(code(r#"[{"$replaceRoot": {"newRoot": "$n"}}]"#), 40228);
}

#[test]
fn group_and_sort_refuse_to_outgrow_memory_without_disk() {
    let mut ctx = context();
    ctx.allow_disk_use = false;
    for text in [r#"[{"$group": {"_id": "$_id", "all": {"$push": "$$ROOT"}}}]"#, r#"[{"$sort": {"x": 1}}]"#] {
        let mut run = Run::new(&ctx);
        (run.limits.group, run.limits.sort) = (1000, 1000);
        let p = parse(&stages(text), &ctx).unwrap();
        let e = p.run_local(documents(), &run).unwrap_err();
        assert_eq!(e.code, document::codes::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, "{text}");
    }
}

#[test]
fn groups_that_went_to_files_are_those_of_memory_however_often_they_were_divided() {
    let ctx = context();
    let input: Vec<DocBuf> = (0..6000i32)
        .map(|i| {
            let k = i.wrapping_mul(7919) % 1500;
            let k = if k % 3 == 0 { Value::Double(f64::from(k)) } else { Value::String(format!("key{k}")) };
            document::doc! { "_id": i, "k": k, "n": i % 100 }.to_doc_buf()
        })
        .collect();
    let text = r#"[{"$group": {"_id": "$k", "n": {"$sum": "$n"}, "all": {"$push": "$_id"}, "a": {"$avg": "$n"}, "f": {"$first": "$_id"}}}]"#;
    let p = parse(&stages(text), &ctx).unwrap();
    let grouped = |limit: usize| {
        let space = Arc::new(spill::tests::MemorySpace::default());
        let mut run = Run { spill: Some(space.clone()), ..Run::new(&ctx) };
        run.limits.group = limit;
        let mut groups = show(&p.run_local(input.clone(), &run).unwrap());
        groups.sort();
        let files = space.made.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!((space.alive.load(std::sync::atomic::Ordering::Relaxed), run.account.bytes()), (0, 0));
        (groups, files)
    };
    let (expected, files) = grouped(usize::MAX);
    assert_eq!((expected.len(), files), (1500, 0));
    // One level of partitions; several, since no two groups fit.
    for (limit, least, most) in [(100_000, 1, 1), (1, 10, usize::MAX)] {
        let (groups, files) = grouped(limit);
        assert_eq!(groups, expected);
        assert!((least..=most).contains(&files), "{limit}: {files} files");
    }
}

#[test]
fn projection_keeps_order_and_reaches_into_arrays() {
    let input = || {
        vec![extended_json::from_str(
            r#"{"_id": 1, "b": {"x": 1, "y": 2}, "a": [{"x": 1, "y": 2}, 5, {"y": 3}]}"#,
        )]
        .into_iter()
        .map(|v| match v.unwrap() {
            Value::Document(d) => d.to_doc_buf(),
            _ => DocBuf::new(),
        })
        .collect::<Vec<_>>()
    };
    let one = |text: &str| show(&run_whole(text, input()).unwrap()).remove(0);
    assert_eq!(
        one(r#"[{"$project": {"a.x": 1, "b": 1}}]"#),
        r#"{"_id":1,"b":{"x":1,"y":2},"a":[{"x":1},{}]}"#
    );
    assert_eq!(one(r#"[{"$unset": ["a.x", "b"]}]"#), r#"{"_id":1,"a":[{"y":2},5,{"y":3}]}"#);
    assert_eq!(
        one(r#"[{"$set": {"b.z": "$b.x", "c": 1}}, {"$unset": "a"}]"#),
        r#"{"_id":1,"b":{"x":1,"y":2,"z":1},"c":1}"#
    );
    assert_eq!(one(r#"[{"$project": {"_id": 0, "s": {"$add": ["$b.x", 1]}}}]"#), r#"{"s":2}"#);
}

#[test]
fn the_front_of_a_pipeline_is_told_to_the_planner() {
    let ctx = context();
    let p = |text: &str| optimize(parse(&stages(text), &ctx).unwrap(), &ctx).unwrap();
    let a = p(
        r#"[{"$sort": {"n": 1}}, {"$match": {"k": "g1"}}, {"$match": {"n": 3}}, {"$skip": 2}, {"$limit": 5}, {"$project": {"x": 1}}]"#,
    );
    assert!(a.leading_match().unwrap().contains_key("$and"));
    assert_eq!(a.without_leading_match().leading_sort().unwrap().1, Some(7));
    assert_eq!(a.without_leading_match().without_leading_sort().leading_limit(), Some(7));
    assert_eq!(a.needed_fields(), Some(vec!["_id".into(), "k".into(), "n".into(), "x".into()]));
    let b = p(r#"[{"$group": {"_id": "$k", "s": {"$sum": "$n"}}}, {"$out": "o"}]"#);
    assert_eq!(b.needed_fields(), Some(vec!["k".into(), "n".into()]));
    assert_eq!(b.writes().unwrap().namespace, Some(Namespace::new("db", "o")));
    assert_eq!(b.involved_namespaces(), vec![(Namespace::new("db", "o"), true)]);
}

#[test]
fn a_filter_goes_ahead_of_what_leaves_its_fields_alone() {
    let ctx = context();
    let optimized = |text: &str| {
        let p = optimize(parse(&stages(text), &ctx).unwrap(), &ctx).unwrap();
        p.to_array().iter().map(extended_json::to_relaxed).collect::<Vec<_>>().join(", ")
    };
    let goes = |text: &str| optimized(text).starts_with(r#"{"$match":"#);
    for stage in [
        r#"{"$addFields": {"t": {"$add": ["$n", 1]}, "u.n": 2}}"#,
        r#"{"$unset": ["t", "u"]}"#,
        r#"{"$project": {"k": 1, "n": true, "u.n": 1}}"#,
        r#"{"$project": {"t": 0, "u": false}}"#,
        r#"{"$unwind": "$t"}"#,
        r#"{"$unwind": {"path": "$t", "includeArrayIndex": "u"}}"#,
        r#"{"$lookup": {"from": "c", "localField": "a", "foreignField": "b", "as": "t"}}"#,
        r#"{"$graphLookup": {"from": "c", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "t"}}"#,
    ] {
        let behind = |filter: &str| format!(r#"[{stage}, {{"$match": {filter}}}]"#);
        for filter in [
            r#"{"n": 1}"#,
            r#"{"_id": 1, "k.a": {"$gt": 1}}"#,
            r#"{"$or": [{"n": 1}, {"$and": [{"k": 2}]}]}"#,
            r#"{"$expr": {"$eq": ["$n", "$k"]}}"#,
        ] {
            let text = optimized(&behind(filter));
            assert!(goes(&behind(filter)) && text.matches("$match").count() == 1, "{text}");
        }
        for filter in [
            r#"{"t": 1}"#,
            r#"{"u.n": 1}"#,
            r#"{"$or": [{"n": 1}, {"u": 2}]}"#,
            r#"{"$expr": {"$eq": ["$n", "$t.x"]}}"#,
            r#"{"$expr": {"$eq": ["$$ROOT", 1]}}"#,
            r#"{"$expr": {"$lt": ["$n", {"$rand": {}}]}}"#,
            r#"{"$sampleRate": 0.5}"#,
            r#"{}"#,
        ] {
            let changed = !filter.contains(r#""u"#) || stage.contains(r#""u"#);
            assert_eq!(goes(&behind(filter)), !changed, "{}", optimized(&behind(filter)));
        }
        let text = optimized(&behind(r#"{"n": 1, "t": 2, "$and": [{"k": 3}, {"t": 4}]}"#));
        assert!(text.starts_with(r#"{"$match":{"$and":[{"n":1},{"k":3}]}}, "#), "{text}");
        assert!(text.ends_with(r#", {"$match":{"$and":[{"t":2},{"t":4}]}}"#), "{text}");
    }
    for text in [
        r#"[{"$limit": 3}, {"$match": {"n": 1}}]"#,
        r#"[{"$project": {"n": "$k"}}, {"$match": {"n": 1}}]"#,
        r#"[{"$project": {"_id": 0, "n": 1}}, {"$match": {"_id": 1}}]"#,
        r#"[{"$project": {"n": {"x": 1}}}, {"$match": {"n": 1}}]"#,
        r#"[{"$group": {"_id": "$n"}}, {"$match": {"_id": 1}}]"#,
    ] {
        assert!(!goes(text), "{}", optimized(text));
    }
    // A long filter behind many stages stays there, once enough of it has been looked at.
    let long: Vec<String> = (0..1000).map(|i| format!(r#"{{"n": {{"$gt": {i}}}}}"#)).collect();
    let many = |n: usize| {
        let stages = vec![r#"{"$addFields": {"t": 1}}"#; n].join(", ");
        optimized(&format!(r#"[{stages}, {{"$match": {{"$and": [{}]}}}}]"#, long.join(", ")))
    };
    assert!(many(3).starts_with(r#"{"$match""#) && !many(100).starts_with(r#"{"$match""#));
    let far =
        r#"[{"$sort": {"n": 1}}, {"$addFields": {"t": 1}}, {"$unwind": "$u"}, {"$match": {"n": 1, "u": 2}}]"#;
    let text = optimized(far);
    assert!(
        text.starts_with(r#"{"$match":{"n":1}}, {"$sort""#) && text.ends_with(r#"{"$match":{"u":2}}"#),
        "{text}"
    );
}

/// Collections in memory.
#[derive(Default)]
struct Collections {
    docs: BTreeMap<String, Vec<DocBuf>>,
    written: Mutex<Vec<DocBuf>>,
    asked: Mutex<usize>,
    /// The most bytes that the account of a pipeline held when it asked.
    held_max: Mutex<usize>,
    /// Whether finding documents takes scans.
    scans: bool,
}

/// Documents that a scan found.
struct Scanned(Documents);

impl Source for Scanned {
    fn next<'a>(&'a mut self, host: &'a dyn PipelineHost) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        self.0.next(host)
    }
    fn scans(&self) -> bool {
        true
    }
}

impl PipelineHost for Collections {
    fn source<'a>(&'a self, _: &'a HostStage, _: &'a Run) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        Box::pin(async { Ok(Box::new(Documents(Some(vec![DocBuf::new()]))) as Box<dyn Source>) })
    }
    fn run<'a>(
        &'a self,
        ns: &'a Namespace,
        pipeline: Vec<Value>,
        let_values: Vec<(String, Value)>,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        *self.asked.lock().unwrap() += 1;
        let mut held_max = self.held_max.lock().unwrap();
        *held_max = run.account.bytes().max(*held_max);
        let mut ctx = context();
        ctx.query.collation = run.collation.clone();
        ctx.namespace = ns.clone();
        ctx.query.variables = Document(let_values);
        let input = self.docs.get(&ns.collection).cloned().unwrap_or_default();
        let out = parse(&pipeline, &ctx).and_then(|p| p.run_local(input, &Run::new(&ctx)));
        Box::pin(async move {
            let found = Documents(Some(out?));
            Ok(if self.scans { Box::new(Scanned(found)) as Box<dyn Source> } else { Box::new(found) })
        })
    }
    fn write<'a>(
        &'a self,
        _: &'a HostStage,
        batch: Vec<DocBuf>,
        _: bool,
        _: &'a Run,
    ) -> BoxFuture<'a, Result<()>> {
        self.written.lock().unwrap().extend(batch);
        Box::pin(async { Ok(()) })
    }
}

fn run_with(host: &Collections, text: &str, input: Vec<DocBuf>) -> Vec<DocBuf> {
    run_in(Run::new(&context()), host, text, input)
}

fn run_in(run: Run, host: &Collections, text: &str, input: Vec<DocBuf>) -> Vec<DocBuf> {
    let p = parse(&stages(text), &context()).unwrap();
    let mut execution = Execution::new(&p, run).unwrap();
    let mut source = Documents(Some(input));
    let future = async {
        let mut out = Vec::new();
        while let Some(batch) = execution.next(&mut source, host).await? {
            out.extend(batch);
        }
        Ok::<_, Error>(out)
    };
    ready(future)
}

/// What comes of a future that a host without waits is part of.
fn ready<T>(future: impl Future<Output = Result<T>>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(done) => done.unwrap(),
        std::task::Poll::Pending => panic!("a ready host was waited for"),
    }
}

fn people() -> Collections {
    let mut host = Collections::default();
    let rows = [
        r#"{"_id": 1, "boss": null, "team": "a"}"#,
        r#"{"_id": 2, "boss": 1, "team": "a"}"#,
        r#"{"_id": 3, "boss": 2}"#,
    ];
    let docs = rows.iter().map(|r| match extended_json::from_str(r).unwrap() {
        Value::Document(d) => d.to_doc_buf(),
        _ => DocBuf::new(),
    });
    host.docs.insert("people".into(), docs.collect());
    host
}

#[test]
fn lookup_by_equality_asks_once_a_batch() {
    let host = people();
    let input = host.docs["people"].clone();
    let out = run_with(
        &host,
        r#"[{"$lookup": {"from": "people", "localField": "boss", "foreignField": "_id", "as": "b"}}, {"$project": {"b._id": 1}}]"#,
        input,
    );
    assert_eq!(
        show(&out),
        [r#"{"_id":1,"b":[]}"#, r#"{"_id":2,"b":[{"_id":1}]}"#, r#"{"_id":3,"b":[{"_id":2}]}"#]
    );
    assert_eq!(*host.asked.lock().unwrap(), 1);
}

#[test]
fn lookup_by_pipeline_binds_variables() {
    let host = people();
    let out = run_with(
        &host,
        r#"[{"$lookup": {"from": "people", "let": {"me": "$_id", "none": "$absent"},
            "pipeline": [{"$match": {"$expr": {"$eq": ["$boss", "$$me"]}}}, {"$project": {"t": {"$type": "$$none"}}}], "as": "r"}},
            {"$project": {"r": 1}}]"#,
        host.docs["people"][..1].to_vec(),
    );
    assert_eq!(show(&out), [r#"{"_id":1,"r":[{"_id":2,"t":"missing"}]}"#]);
}

#[test]
fn graph_lookup_walks_to_the_depth_given() {
    let host = people();
    let out = run_with(
        &host,
        r#"[{"$graphLookup": {"from": "people", "startWith": "$boss", "connectFromField": "boss", "connectToField": "_id",
            "as": "chain", "depthField": "d"}}, {"$project": {"chain._id": 1, "chain.d": 1}}]"#,
        host.docs["people"][2..].to_vec(),
    );
    assert_eq!(show(&out), [r#"{"_id":3,"chain":[{"_id":2,"d":0},{"_id":1,"d":1}]}"#]);
}

#[test]
fn union_comes_after_the_input_and_merge_writes() {
    let host = people();
    let out = run_with(
        &host,
        r#"[{"$unionWith": "people"}, {"$group": {"_id": null, "n": {"$sum": 1}}}, {"$merge": "t"}]"#,
        documents(),
    );
    assert!(out.is_empty());
    assert_eq!(show(&host.written.lock().unwrap()), [r#"{"_id":null,"n":63}"#]);
}

/// Values that a join tells apart or does not: null, missing, arrays, numbers of several types, upper and lower case.
fn joined_value(i: usize) -> Option<Value> {
    Some(match i % 9 {
        0 => return None,
        1 => Value::Null,
        2 => Value::Int32((i % 70) as i32),
        3 => Value::Double((i % 70) as f64),
        4 => Value::Array(vec![Value::Int32((i % 70) as i32), Value::Int32(3), Value::Null]),
        5 => Value::Array(Vec::new()),
        6 => Value::String(format!("K{}", i % 50)),
        7 => Value::String(format!("k{}", i % 50)),
        _ => Value::Array(vec![Value::Array(vec![Value::Int32(3)]), Value::String(format!("K{}", i % 50))]),
    })
}

#[test]
fn lookup_without_an_index_reads_the_foreign_collection_twice_and_finds_the_same() {
    let document = |i: usize, path: &[&str]| {
        let mut d = document::doc! { "_id": i as i32 };
        if let Some(v) = joined_value(i) {
            match path {
                [name] => d.push(*name, v),
                _ => d.push(path[0], Document(vec![(path[1].to_string(), v)])),
            }
        }
        d.to_doc_buf()
    };
    let input: Vec<DocBuf> = (0..2000).map(|i| document(i * 7, &["a"])).collect();
    let foreign: Vec<DocBuf> = (0..150).map(|i| document(i, &["b", "c"])).collect();
    let text = r#"[{"$lookup": {"from": "f", "localField": "a", "foreignField": "b.c", "as": "j"}}, {"$project": {"j._id": 1}}]"#;
    let insensitive = Collation::parse(document::doc! { "locale": "en", "strength": 2 }.to_doc_buf().doc());
    for collation in [Collation::default(), insensitive.unwrap()] {
        let joined = |scans: bool, side: usize, disk: bool| {
            let mut host = Collections { scans, ..Collections::default() };
            host.docs.insert("f".into(), foreign.clone());
            let space = Arc::new(spill::tests::MemorySpace::default());
            let spill = disk.then(|| space.clone() as Arc<dyn spill::Space>);
            let mut run = Run { spill, collation: collation.clone(), ..Run::new(&context()) };
            run.limits.lookup_side = side;
            let account = run.account.clone();
            let out = show(&run_in(run, &host, text, input.clone()));
            let files = space.made.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!((space.alive.load(std::sync::atomic::Ordering::Relaxed), account.bytes()), (0, 0));
            (out, *host.asked.lock().unwrap(), files > 0)
        };
        let (expected, asked, _) = joined(false, usize::MAX, true);
        assert!(asked >= 4, "asked {asked} times for 2000 documents");
        // In memory, in files, and asked for as before where it does not fit and there are no files.
        for (side, disk, times, files) in
            [(usize::MAX, true, 2, false), (1000, true, 2, true), (1000, false, asked + 1, false)]
        {
            let (found, again, spilled) = joined(true, side, disk);
            assert_eq!((again, spilled), (times, files));
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected);
            }
        }
    }
}

/// With each partition compared to all before it took a minute.
#[test]
fn partitions_to_densify_may_be_many() {
    let text = r#"[{"$densify": {"field": "n", "partitionByFields": ["p"], "range": {"step": 1, "bounds": [0, 2]}}}, {"$count": "n"}]"#;
    let input = (0..50_000).map(|i| document::doc! {"p": (format!("p{i}")), "n": 0}.to_doc_buf()).collect();
    assert_eq!(show(&run_whole(text, input).unwrap()), [r#"{"n":100000}"#]);
}

#[test]
fn partitions_to_densify_are_apart_where_null_and_missing() {
    let text = r#"[{"$densify": {"field": "n", "partitionByFields": ["p", "q"], "range": {"step": 1, "bounds": [0, 2]}}}]"#;
    let rows = [
        document::doc! {"p": (Value::Null), "n": 0},
        document::doc! {"q": (Value::Null), "n": 0},
        document::doc! {"p": 1, "n": 0},
        document::doc! {"p": 1.0, "n": 1},
        document::doc! {"n": 0},
    ];
    let out = run_whole(text, rows.iter().map(Document::to_doc_buf).collect()).unwrap();
    assert_eq!(out.len(), 8, "{:?}", show(&out));
}

#[test]
fn what_facets_found_is_in_the_account() {
    let ctx = context();
    let run = Run::new(&ctx);
    let pipeline = parse(&stages(r#"[{"$project": {"n": 1}}]"#), &ctx).unwrap();
    let mut facets = running_facet::RunningFacet::new(&[("a".into(), pipeline)], &run).unwrap();
    ready(facets.push(documents(), &Collections::default()));
    assert!(run.account.bytes() > 60 * 16, "{}", run.account.bytes());
    drop(facets);
    assert_eq!(run.account.bytes(), 0);
}

#[test]
fn the_values_that_a_join_asks_for_are_in_the_account() {
    let host = people();
    let input = document::doc! {"_id": 1, "boss": ("x".repeat(100_000))}.to_doc_buf();
    let text = r#"[{"$lookup": {"from": "people", "localField": "boss", "foreignField": "_id", "as": "b"}}]"#;
    let run = Run::new(&context());
    let account = run.account.clone();
    assert_eq!(run_in(run, &host, text, vec![input]).len(), 1);
    assert!(*host.held_max.lock().unwrap() > 200_000);
    assert_eq!(account.bytes(), 0);
}
