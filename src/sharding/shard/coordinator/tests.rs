//! A coordinator whose participants do not answer, or answer late.

use super::*;
use crate::remote::{Remote, Transport};
use crate::routing::CatalogCache;
use crate::shard::tests::open_node;
use futures::future::BoxFuture;
use node::operation::NO_USER;
use node::parameters::Parameters;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Shard `a` votes to commit; `b` cannot be reached until it is back.
#[derive(Default)]
struct Shards {
    back: AtomicBool,
    aborts: AtomicUsize,
}

impl Transport for Shards {
    fn call<'a>(&'a self, host: &'a str, _db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        let command = command.to_document();
        let name = command.first().map(|(name, _)| name.to_string()).unwrap_or_default();
        Box::pin(async move {
            match (host, name.as_str()) {
                ("config:1", "find") => {
                    let shards = ["a", "b"].map(|s| doc! { "_id": s, "host": format!("{s}:1") }).to_vec();
                    let cursor = doc! { "id": 0i64, "ns": "config.shards", "firstBatch": shards };
                    Ok(doc! { "cursor": cursor }.to_doc_buf())
                }
                ("b:1", _) if !self.back.load(Ordering::SeqCst) => bail!(HOST_UNREACHABLE, "b is down"),
                (_, "prepareTransaction") => {
                    Ok(doc! { "prepareTimestamp": Timestamp::new(7, 1) }.to_doc_buf())
                }
                (_, "abortTransaction") => {
                    self.aborts.fetch_add(1, Ordering::SeqCst);
                    Ok(doc! {}.to_doc_buf())
                }
                (_, other) => bail!(COMMAND_NOT_FOUND, "{host} is asked for {other}"),
            }
        })
    }
}

#[tokio::test]
async fn at_the_deadline_a_silent_participant_is_out_voted_and_told_until_it_hears() {
    let shards = Arc::new(Shards::default());
    let remote = Remote::new(shards.clone(), Some("config:1"));
    let parameters = Arc::new(Parameters::new());
    parameters.set_at_runtime("transactionLifetimeLimitSeconds", &Value::Int32(1)).unwrap();
    let role = ShardRole::new(open_node("a:1"), remote.clone(), CatalogCache::new(remote), parameters);
    let key = (SessionId::of_client([3; 16], NO_USER), 5);
    let participants = vec![Value::from("a"), Value::from("b")];
    role.local.ensure_collection(COLLECTION, &[]).await.unwrap();
    role.local
        .put(COLLECTION, &doc! { "_id": id_of(key), "participants": participants.clone() })
        .await
        .unwrap();
    role.recover_coordinators().await.unwrap();
    let mut news = role.coordinators.news(&key).unwrap();
    // Whoever takes up what runs already must not take the news from those that wait for it.
    role.recover_coordinators().await.unwrap();
    let decided = news.wait_for(|n| *n != News::Open).await.unwrap().clone();
    let News::Decided(Decision::Abort(codes::NO_SUCH_TRANSACTION, text)) = decided else {
        panic!("{decided:?}")
    };
    assert!(text.ends_with(": b"), "{text}");
    let kept = role.local.find_one(COLLECTION, &doc! {}).unwrap().unwrap();
    assert_eq!(kept.get_document("decision").unwrap().get_str("decision"), Some("abort"));
    let rows = role.coordinators.current_operations();
    let state = rows[0].get_document("twoPhaseCommitCoordinator").unwrap().get_str("state");
    assert_eq!((rows.len(), state), (1, Some("waitingForDecisionAcks")));
    shards.back.store(true, Ordering::SeqCst);
    news.wait_for(|n| matches!(n, News::Ended(_))).await.unwrap();
    assert_eq!(shards.aborts.load(Ordering::SeqCst), 2);
    assert!(role.local.find_one(COLLECTION, &doc! {}).unwrap().is_none());
    assert!(role.coordinators.current_operations().is_empty());
}

/// Refuses the commit of the transaction with number `n` by the code `n`, once, and takes it then.
#[derive(Default)]
struct RefusingOnce {
    /// With an unmet write concern beside the refusal.
    unmet: bool,
    told: Mutex<BTreeMap<i64, usize>>,
}

impl Transport for RefusingOnce {
    fn call<'a>(&'a self, _host: &'a str, _db: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        let command = command.to_document();
        Box::pin(async move {
            if command.contains_key("find") {
                let cursor =
                    doc! { "id": 0i64, "ns": "config.shards", "firstBatch": [{ "_id": "b", "host": "b:1" }] };
                return Ok(doc! { "cursor": cursor }.to_doc_buf());
            }
            assert!(command.contains_key("commitTransaction"), "{command:?}");
            let number = command.get_i64("txnNumber").unwrap();
            let times = *self.told.lock().entry(number).and_modify(|n| *n += 1).or_insert(1);
            if times > 1 {
                return Ok(doc! {}.to_doc_buf());
            }
            let refused = Error::new(number as i32, "refused");
            Err(match self.unmet {
                true => refused.with_info(doc! { "writeConcernError": { "code": 64, "errmsg": "waiting" } }),
                false => refused,
            })
        })
    }
}

impl RefusingOnce {
    /// How often the commit was told to a participant that refused it at first, by the code of the refusal.
    async fn told(self, refusals: &[i32]) -> BTreeMap<i64, usize> {
        let shards = Arc::new(self);
        let remote = Remote::new(shards.clone(), Some("config:1"));
        let role = ShardRole::new(
            open_node("a:1"),
            remote.clone(),
            CatalogCache::new(remote),
            Arc::new(Parameters::new()),
        );
        role.local.ensure_collection(COLLECTION, &[]).await.unwrap();
        let decision = decision_document(&Decision::Commit(Timestamp::new(9, 1).as_u64()));
        for code in refusals {
            let key = (SessionId::of_client([4; 16], NO_USER), i64::from(*code));
            let state = doc! { "_id": id_of(key), "participants": ["b"], "decision": decision.clone() };
            role.local.put(COLLECTION, &state).await.unwrap();
        }
        role.recover_coordinators().await.unwrap();
        for code in refusals {
            let key = (SessionId::of_client([4; 16], NO_USER), i64::from(*code));
            if let Some(mut news) = role.coordinators.news(&key) {
                // Where it has ended by now, nobody is left who tells.
                let _ = news.wait_for(|n| matches!(n, News::Ended(_))).await;
            }
        }
        assert!(role.local.find_one(COLLECTION, &doc! {}).unwrap().is_none());
        shards.told.lock().clone()
    }
}

#[tokio::test]
async fn only_what_says_that_it_has_ended_there_counts_as_the_end_of_a_commit() {
    const ENDED: [i32; 2] = [codes::TRANSACTION_TOO_OLD, codes::NO_SUCH_TRANSACTION];
    // Among them 322 and 323, of the API's version.
    let refusals: Vec<i32> = (1..400).chain([9001, 10107, 11600, 11602, 13388, 13435, 50768]).collect();
    for (code, times) in RefusingOnce::default().told(&refusals).await {
        let expected = if ENDED.contains(&(code as i32)) { 1 } else { 2 };
        assert_eq!(
            times, expected,
            "the commit was told so often to a participant that refused it with {code}"
        );
    }
    let unmet = RefusingOnce { unmet: true, ..RefusingOnce::default() };
    assert_eq!(
        unmet.told(&ENDED).await.into_values().collect::<Vec<_>>(),
        [2, 2],
        "it may yet be rolled back"
    );
}

/// That there is no such transaction would have its client run it again, though it may have been committed.
#[tokio::test]
async fn the_end_of_a_transaction_that_its_session_has_left_behind_is_too_old() {
    let remote = Remote::new(Arc::new(Shards::default()), Some("config:1"));
    let parameters = Arc::new(Parameters::new());
    let role = ShardRole::new(open_node("a:1"), remote.clone(), CatalogCache::new(remote), parameters);
    let id = SessionId::of_client([3; 16], NO_USER);
    let at = protocol::session::EntryTime { ts: 1, term: 1 };
    role.node.sessions.apply_transaction(id, 6, Phase::Committed, &[], at, 0);
    let limits = Limits {
        lifetime: std::time::Duration::from_secs(1),
        lock_timeout: None,
        section_timeout: std::time::Duration::MAX,
        bytes_max: u64::MAX,
        may_restart: true,
    };
    for participants in [vec![], vec!["a".to_string(), "b".to_string()]] {
        for (number, code) in [(5, Some(codes::TRANSACTION_TOO_OLD)), (6, None)] {
            let command = doc! { "coordinateCommitTransaction": 1, "lsid": id.to_document(), "txnNumber": number as i64,
            "autocommit": false };
            let client = Arc::new(node::operation::ClientInfo::default());
            let op = Arc::new(Operation::parse(1, client, command.to_doc_buf().doc()).unwrap());
            let done = role.coordinate_commit(&op, participants.clone(), limits).await;
            assert_eq!(done.err().map(|e| e.code), code);
        }
    }
}
