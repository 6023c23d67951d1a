//! Commands of the wrong shape, with the code the real server gives each, and what is coerced instead of refused.

use crate::operation::{ClientInfo, Operation};
use crate::replication::testing;
use crate::{Node, Request, ddl, read, write};
use document::{DocWriter, Document, Result, Value, array, doc};
use std::sync::Arc;

async fn run(node: &Arc<Node>, command: Document) -> Result<Document> {
    let body = command.to_doc_buf();
    let op = Arc::new(Operation::parse(1, Arc::new(ClientInfo::default()), body.doc())?);
    let r = Request { db: "t", body: body.doc(), sequences: &[] };
    let mut out = vec![0; 4];
    match r.name() {
        "insert" => return write::insert::insert(node, &op, r).await,
        "update" => return write::update::update(node, &op, r).await,
        "delete" => return write::delete::delete(node, &op, r).await,
        "findAndModify" => return write::find_and_modify::find_and_modify(node, &op, r).await,
        "bulkWrite" => return write::bulk_write::bulk_write(node, &op, r).await,
        "create" => return ddl::collections::create(node, &op, r).await,
        "collMod" => return ddl::coll_mod::coll_mod(node, &op, r).await,
        "createIndexes" => return ddl::indexes::create_indexes(node, &op, r).await,
        "count" => return read::count::count(node, &op, r).await,
        "distinct" => drop(read::distinct::distinct(node, &op, r, &mut DocWriter::resume(&mut out)).await?),
        "aggregate" => read::aggregate::aggregate(node, &op, r, &mut DocWriter::resume(&mut out)).await?,
        "getMore" => read::get_more::get_more(node, &op, r, &mut DocWriter::resume(&mut out)).await?,
        other => panic!("no {other} here"),
    }
    out.push(0);
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    Ok(document::Doc::from_validated(&out).to_document())
}

async fn prepared() -> Arc<Node> {
    let node = testing::node(None);
    for command in [
        doc! {"insert": "c", "documents": [{"_id": 1, "x": true}, {"_id": 2, "x": false}, {"_id": 3, "x": 5}]},
        doc! {"create": "capped", "capped": true, "size": 4096},
        doc! {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"a": 1, "b": 1}, "name": "ab"}]},
        doc! {"create": "v", "viewOn": "c", "pipeline": []},
    ] {
        run(&node, command).await.expect("prepares");
    }
    node
}

fn refused_writes() -> Vec<(i32, Document)> {
    let ns = || array![{"ns": "t.c"}];
    vec![
        (14, doc! {"insert": "c", "documents": [{}], "ordered": 1}),
        (14, doc! {"insert": "c", "documents": [{}], "bypassDocumentValidation": "yes"}),
        (14, doc! {"insert": "c", "documents": [1]}),
        (40414, doc! {"insert": "c", "documents": Value::Null}),
        (14, doc! {"update": "c", "updates": [{"q": 1, "u": {}}]}),
        (9, doc! {"update": "c", "updates": [{"q": {}, "u": 1}]}),
        (9, doc! {"update": "c", "updates": [{"q": {}, "u": {}, "hint": 1}]}),
        (14, doc! {"update": "c", "updates": [{"q": {}, "u": {}, "arrayFilters": {}}]}),
        (40414, doc! {"update": "c", "updates": [{"q": {}}]}),
        (40415, doc! {"update": "c", "updates": [{"q": {}, "u": {}, "x": 1}]}),
        (9, doc! {"delete": "c", "deletes": [{"q": {}, "limit": 2}]}),
        (14, doc! {"delete": "c", "deletes": [{"q": [], "limit": 1}]}),
        (14, doc! {"findAndModify": "c", "query": 1, "remove": true}),
        (14, doc! {"findAndModify": "c", "new": "x", "update": {}}),
        (9, doc! {"findAndModify": "c", "update": 1}),
        (14, doc! {"bulkWrite": 1, "ops": {}, "nsInfo": ns()}),
        (
            14,
            doc! {"bulkWrite": 1, "ops": [{"update": 0, "filter": {}, "updateMods": {}, "multi": 1}], "nsInfo": ns()},
        ),
        (40414, doc! {"bulkWrite": 1, "ops": [{"insert": Value::Null, "document": {}}], "nsInfo": ns()}),
        (2, doc! {"findAndModify": "c", "query": {"_id": 1}, "remove": true, "hint": "nope"}),
        (166, doc! {"findAndModify": "v", "query": {"_id": 1}, "remove": true}),
        (40415, doc! {"bulkWrite": 1, "ops": [{"upsert": 0}], "nsInfo": ns()}),
        (9, doc! {"insert": "c", "documents": [{}], "writeConcern": {"w": f64::NAN}}),
        (40415, doc! {"insert": "c", "documents": [{}], "writeConcern": {"x": 1}}),
        (9, doc! {"insert": "c", "documents": [{}], "writeConcern": {"w": {}}}),
        (9, doc! {"insert": "c", "documents": [{}], "writeConcern": {"wtimeout": 3e9}}),
    ]
}

fn refused_definitions() -> Vec<(i32, Document)> {
    let uuid = || Value::uuid([9; 16]);
    vec![
        (14, doc! {"create": "n", "capped": "yes"}),
        (2, doc! {"create": "n", "validationLevel": "often"}),
        (72, doc! {"create": "n", "expireAfterSeconds": 5}),
        (2, doc! {"create": "n", "idIndex": {"key": {"_id": -1}, "name": "_id_"}}),
        (9, doc! {"create": "n", "idIndex": {"key": {"_id": 1}}}),
        (197, doc! {"create": "n", "idIndex": {"key": {"_id": 1}, "name": "_id_", "unique": true}}),
        (67, doc! {"create": "n", "idIndex": {"key": {"_id": 1}, "name": "_id_", "v": 3}}),
        (72, doc! {"create": "n", "viewOn": "c", "idIndex": {"key": {"_id": 1}, "name": "_id_"}}),
        (40414, doc! {"create": "n", "changeStreamPreAndPostImages": {}}),
        (72, doc! {"create": "n", "viewOn": "c", "changeStreamPreAndPostImages": {"enabled": true}}),
        (14, doc! {"collMod": "c", "index": 1}),
        (72, doc! {"collMod": "c", "index": {}}),
        (40415, doc! {"collMod": "c", "index": {"name": "a_1", "bogus": 1}}),
        (72, doc! {"collMod": "c", "index": {"name": "a_1", "keyPattern": {"a": 1}, "hidden": true}}),
        (72, doc! {"collMod": "c", "index": {"name": "a_1"}}),
        (27, doc! {"collMod": "c", "index": {"name": "nope", "hidden": true}}),
        (72, doc! {"collMod": "c", "index": {"name": "ab", "expireAfterSeconds": 5}}),
        (72, doc! {"collMod": "c", "index": {"name": "a_1", "expireAfterSeconds": -1}}),
        (2, doc! {"collMod": "c", "index": {"name": "a_1", "unique": false}}),
        (72, doc! {"collMod": "c", "index": {"name": "a_1", "unique": true}}),
        (72, doc! {"collMod": "c", "cappedSize": 4096}),
        (2, doc! {"collMod": "capped", "cappedSize": 0}),
        (2, doc! {"collMod": "capped", "cappedMax": 2_147_483_648_i64}),
        (72, doc! {"collMod": "c", "dryRun": true}),
        (72, doc! {"collMod": "v", "index": {"name": "a_1", "hidden": true}}),
        (361, doc! {"collMod": "c", "collectionUUID": uuid()}),
        (
            67,
            doc! {"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z", "partialFilterExpression": {"a": {"$ne": 5}}}]},
        ),
        (
            67,
            doc! {"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z", "partialFilterExpression": {"$or": [{"a": {"$exists": false}}]}}]},
        ),
        (
            224,
            doc! {"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z", "partialFilterExpression": {"$expr": true}}]},
        ),
        (5979703, doc! {"create": "n", "clusteredIndex": 1}),
        (2, doc! {"create": "n", "validator": {"$text": {"$search": "x"}}}),
        (2, doc! {"create": "n", "validator": {"$where": "true"}}),
        (5626500, doc! {"create": "n", "validator": {"a": {"$near": [0, 0]}}}),
        (2, doc! {"collMod": "c", "validator": {"$and": [{"$text": {"$search": "x"}}]}}),
        (73, doc! {"create": "n", "viewOn": ".x", "pipeline": []}),
        (73, doc! {"createIndexes": "system.x", "indexes": [{"key": {"z": 1}, "name": "z"}]}),
        (6316402, doc! {"create": "n", "encryptedFields": {"fields": [{"path": "", "keyId": uuid()}]}}),
        (72, doc! {"create": "n", "storageEngine": {"mine": {}}}),
        (72, doc! {"create": "n", "capped": true, "viewOn": "c"}),
    ]
}

fn refused_reads() -> Vec<(i32, Document)> {
    vec![
        (2, doc! {"count": "c", "limit": true}),
        (2, doc! {"count": "c", "skip": (-1)}),
        (9, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"Upper": 1}}),
        (9, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"a-b": 1}}),
        (4738901, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"NOW": 1}}),
        (2, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "writeConcern": {"w": 2}}),
        (2, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "writeConcern": {"w": Value::Null}}),
        (10071200, doc! {"aggregate": "c", "pipeline": [{"$set": {"at": "$$CLUSTER_TIME"}}], "cursor": {}}),
        (2, doc! {"count": "c", "limit": i64::MIN}),
        (9, doc! {"count": "c", "limit": f64::NAN}),
        (2, doc! {"aggregate": "c", "pipeline": [], "cursor": {"batchSize": (-1)}}),
        (73, doc! {"aggregate": true, "pipeline": [], "cursor": {}}),
        (14, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "allowDiskUse": 1}),
        (14, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "allowDiskUse": Value::Null}),
        (14, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "explain": Value::Null}),
        (14, doc! {"aggregate": "c", "pipeline": [], "cursor": Value::Null}),
        (14, doc! {"aggregate": "c", "pipeline": Value::Null, "cursor": {}}),
        (9, doc! {"aggregate": "c", "pipeline": [], "cursor": {}, "hint": Value::Null}),
        (9, doc! {"aggregate": "c", "pipeline": [], "explain": true, "writeConcern": {"w": 1}}),
        (9, doc! {"count": "c", "hint": Value::Null}),
        (2, doc! {"count": "c", "limit": Value::Null}),
        (2, doc! {"count": "c", "hint": {"$natural": 1, "a": 1}}),
        (9, doc! {"distinct": "c", "key": "x", "hint": Value::Null}),
        (40415, doc! {"aggregate": 1, "pipeline": [{"$currentOp": {"Idle": true}}], "cursor": {}}),
        (73, doc! {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}}),
        (40414, doc! {"getMore": Value::Null, "collection": "c"}),
        (14, doc! {"getMore": 1_i64, "collection": "c", "term": "x"}),
        (14, doc! {"count": "c", "readConcern": 1}),
        (14, doc! {"count": "c", "readConcern": {"afterClusterTime": 1}}),
    ]
}

#[tokio::test]
async fn commands_of_the_wrong_shape_get_the_codes_of_the_real_server() {
    let node = prepared().await;
    let refused = [refused_writes(), refused_definitions(), refused_reads()].concat();
    for (code, command) in refused {
        let shown = format!("{command:?}");
        match run(&node, command).await {
            Ok(reply) => panic!("{shown} was answered with {reply:?}"),
            Err(error) => assert_eq!(error.code, code, "{shown}: {error}"),
        }
    }
    let left = run(&node, doc! {"count": "c"}).await.unwrap();
    assert_eq!(left.get_i64("n"), Some(3), "nothing of what was refused was done");
}

#[tokio::test]
async fn stages_that_write_or_look_at_the_node_are_refused_where_the_real_server_refuses_them() {
    let node = prepared().await;
    let pipeline = |stage: Document| doc! {"aggregate": "c", "pipeline": (Value::Array(vec![stage.into()])), "cursor": {}};
    let view =
        |stage: Document| doc! {"create": "w", "viewOn": "c", "pipeline": (Value::Array(vec![stage.into()]))};
    let merge = |matched: &str, not: &str| {
        pipeline(doc! {"$merge": {"into": "t", "whenMatched": matched, "whenNotMatched": not}})
    };
    let twice = |name: &str, first: Value, last: Value| {
        Document(vec![(name.to_string(), first), (name.to_string(), last)])
    };
    let refused = vec![
        (167, view(doc! {"$out": "x"})),
        (167, view(doc! {"$merge": {"into": "x"}})),
        (40573, view(doc! {"$changeStream": {}})),
        (73, view(doc! {"$listSessions": {}})),
        (40600, view(doc! {"$facet": {"a": [{"$out": "x"}]}})),
        (40324, view(doc! {"$nonsense": 1})),
        (73, pipeline(doc! {"$out": {"db": "a b", "coll": "x"}})),
        (166, pipeline(doc! {"$merge": {"into": "v"}})),
        (14, pipeline(doc! {"$merge": 1})),
        (15998, pipeline(doc! {"$merge": {"into": "t", "on": "a..b"}})),
        (14, pipeline(doc! {"$merge": {"into": "t", "whenMatched": [1]}})),
        (51273, pipeline(doc! {"$merge": {"into": "t", "let": {"new": 1}, "whenMatched": []}})),
        (51181, merge("fail", "discard")),
        (51181, merge("keepExisting", "fail")),
        (14, pipeline(doc! {"$collStats": {"count": 1}})),
        (31170, pipeline(doc! {"$collStats": {"count": {"x": 1}}})),
        (40415, pipeline(doc! {"$collStats": {"latencyStats": {"x": 1}}})),
        (15975, pipeline(doc! {"$sort": {"$a": 0}})),
        (15974, pipeline(doc! {"$sort": {"$a": "asc"}})),
        (9, pipeline(doc! {"$sort": {"a": {"$meta": "textScore", "b": 1}}})),
        (2, pipeline(doc! {"$collStats": {"storageStats": {"scale": 0.5}}})),
        (9, pipeline(doc! {"$planCacheStats": (twice("allHosts", false.into(), true.into()))})),
        (40413, pipeline(doc! {"$merge": (twice("into", "t".into(), "u".into()))})),
    ];
    for (code, command) in refused {
        let shown = format!("{command:?}");
        match run(&node, command).await {
            Ok(reply) => panic!("{shown} was answered with {reply:?}"),
            Err(error) => assert_eq!(error.code, code, "{shown}: {error}"),
        }
    }
}

#[tokio::test]
async fn a_statement_on_a_view_or_with_a_hint_of_no_index_fails_even_where_nothing_matches() {
    let node = prepared().await;
    for (code, command) in [
        (166, doc! {"delete": "v", "deletes": [{"q": {"_id": 77}, "limit": 1}]}),
        (166, doc! {"update": "v", "updates": [{"q": {"_id": 77}, "u": {"$set": {"a": 1}}}]}),
        (2, doc! {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1, "hint": "nope"}]}),
        (2, doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "hint": "nope"}]}),
    ] {
        let reply = run(&node, command).await.unwrap();
        let Some([error]) = reply.get_array("writeErrors").map(Vec::as_slice) else { panic!("{reply:?}") };
        assert_eq!(error.as_document().and_then(|e| e.get_i64("code")), Some(code));
    }
}

#[tokio::test]
async fn a_merge_sees_the_new_document_beside_its_variables_and_never_changes_an_id() {
    let node = prepared().await;
    run(&node, doc! {"createIndexes": "t", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": true}]})
        .await
        .unwrap();
    run(&node, doc! {"insert": "t", "documents": [{"_id": 3, "y": 1}]}).await.unwrap();
    let merge = |stage: Document| {
        doc! {"aggregate": "c", "pipeline": [{"$match": {"_id": 3}}, {"$merge": stage}], "cursor": {}, "let": {"w": 7}}
    };
    let pipeline = array![{"$set": {"new": "$$new.x", "v": "$$v", "w": "$$u"}}];
    let stage = doc! {"into": "t", "let": {"v": "$x", "u": "$$w"}, "whenMatched": pipeline};
    run(&node, merge(stage)).await.unwrap();
    let reply = run(&node, doc! {"aggregate": "t", "pipeline": [], "cursor": {}}).await.unwrap();
    let batch = reply.get_document("cursor").and_then(|c| c.get_array("firstBatch")).cloned().unwrap();
    assert_eq!(batch, vec![doc! {"_id": 3, "y": 1, "new": 5, "v": 5, "w": 7}.into()]);
    let missing = doc! {"into": "t", "let": {"v": "$nope"}, "whenMatched": [{"$set": {"v": "$$v"}}]};
    assert_eq!(run(&node, merge(missing)).await.unwrap_err().code, 17276);
    run(&node, doc! {"insert": "t", "documents": [{"_id": 8, "x": 5}]}).await.unwrap();
    for mode in ["replace", "merge"] {
        let stage = doc! {"into": "t", "on": "x", "whenMatched": mode};
        assert_eq!(run(&node, merge(stage)).await.unwrap_err().code, 66, "{mode}");
    }
}

#[tokio::test]
async fn a_filter_of_names_sees_only_what_is_shown() {
    let node = prepared().await;
    let list = |filter: Document| {
        let body = doc! {"listCollections": 1, "nameOnly": true, "filter": filter}.to_doc_buf();
        ddl::list::list_collections(&node, Request { db: "t", body: body.doc(), sequences: &[] })
    };
    assert_eq!(list(doc! {"options": {"$exists": false}}).unwrap().len(), 4);
    assert_eq!(list(doc! {"type": "view"}).unwrap(), vec![doc! {"name": "v", "type": "view"}]);
    assert_eq!(list(doc! {"$expr": {"$lt": ["$$NOW", "x"]}}).unwrap_err().code, 51144);
}

#[tokio::test]
async fn a_merge_keeps_going_past_a_document_that_violates_a_unique_index() {
    let node = prepared().await;
    run(&node, doc! {"createIndexes": "t", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": true}]})
        .await
        .unwrap();
    run(&node, doc! {"insert": "t", "documents": [{"_id": 9, "x": true}]}).await.unwrap();
    let merge = doc! {"aggregate": "c", "pipeline": [{"$merge": {"into": "t"}}], "cursor": {}};
    assert_eq!(run(&node, merge).await.unwrap_err().code, 11000);
    assert_eq!(run(&node, doc! {"count": "t"}).await.unwrap().get_i64("n"), Some(3), "the other two went in");
}

#[tokio::test]
async fn coll_mod_coerces_what_it_answers_and_keeps_silent_about_what_stays() {
    let node = prepared().await;
    let index = |option: &str, v: Value| {
        let mut d = doc! {"name": "a_1"};
        d.push(option, v);
        doc! {"collMod": "c", "index": d}
    };
    let reply = run(&node, index("hidden", Value::Double(-2.0))).await.unwrap();
    assert_eq!(reply, doc! {"hidden_old": false, "hidden_new": true});
    let reply = run(&node, index("hidden", Value::Boolean(true))).await.unwrap();
    assert_eq!(reply, doc! {}, "it was hidden already");
    let reply = run(&node, index("expireAfterSeconds", Value::Double(50.7))).await.unwrap();
    assert_eq!(reply, doc! {"expireAfterSeconds_new": 50_i64});
    let half = document::number::decimal_from_str("2.5").unwrap();
    let reply = run(&node, index("expireAfterSeconds", Value::Decimal128(half))).await.unwrap();
    assert_eq!(
        reply,
        doc! {"expireAfterSeconds_old": 50_i64, "expireAfterSeconds_new": 2_i64},
        "half to even"
    );
    run(&node, index("prepareUnique", Value::Boolean(true))).await.unwrap();
    let mut dry = index("unique", Value::Boolean(true));
    dry.push("dryRun", true);
    assert_eq!(run(&node, dry.clone()).await.unwrap_err().code, 359, "it finds what stands in the way");
    let both = doc! {"collMod": "c", "index": {"name": "a_1", "prepareUnique": false, "hidden": true}};
    assert_eq!(run(&node, both).await.unwrap_err().code, 72, "only by itself");
    for id in 1..=3 {
        let own = doc! {"update": "c", "updates": [{"q": {"_id": id}, "u": {"$set": {"a": id}}}]};
        run(&node, own).await.unwrap();
    }
    assert_eq!(run(&node, dry).await.unwrap(), doc! {}, "a dry run converts nothing");
    let converted = run(&node, index("unique", Value::Boolean(true))).await.unwrap();
    assert_eq!(converted, doc! {"unique_new": true});
}

#[tokio::test]
async fn distinct_answers_in_bson_order_and_a_mistaken_uuid_fails_its_operations_only() {
    let node = prepared().await;
    let reply = run(&node, doc! {"distinct": "c", "key": "x"}).await.unwrap();
    assert_eq!(reply.get("values"), Some(&array![5, false, true]));
    let bulk = doc! {
        "bulkWrite": 1, "ops": [{"insert": 0, "document": {"_id": 7}}],
        "nsInfo": [{"ns": "t.c", "collectionUUID": (Value::uuid([9; 16]))}],
    };
    assert_eq!(run(&node, bulk).await.unwrap().get_i64("nErrors"), Some(1));
}
