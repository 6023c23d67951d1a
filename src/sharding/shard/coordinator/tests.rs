//! A coordinator whose participants do not answer, or answer late.

use super::*;
use crate::remote::{Remote, Transport};
use crate::routing::CatalogCache;
use crate::shard::tests::open_node;
use futures::future::BoxFuture;
use node::operation::NO_USER;
use node::parameters::Parameters;
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
