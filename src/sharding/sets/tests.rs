//! The members of a set as they are watched, over a transport of the test.

use super::*;
use document::DocBuf;
use futures::future::BoxFuture;
use std::future::pending;

/// Members that reply what the test says; one without a reply is silent.
#[derive(Default)]
struct Fake {
    replies: Mutex<BTreeMap<String, Document>>,
}

impl Fake {
    fn say(&self, host: &str, role: &str, election: u8) {
        let hosts: Vec<document::Value> = ["a:1", "b:1", "c:1"].into_iter().map(Into::into).collect();
        let reply = doc! {
            "ok": 1.0, "setName": "rs", "setVersion": 1, "hosts": hosts, "isWritablePrimary": role == "primary",
            "secondary": role == "secondary", "electionId": ObjectId([election; 12]),
        };
        self.replies.lock().insert(host.to_string(), reply);
    }
}

impl Transport for Fake {
    fn call<'a>(&'a self, host: &'a str, _: &'a str, _: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let reply = self.replies.lock().get(host).cloned();
            reply.map(|r| r.to_doc_buf()).ok_or_else(|| err!(HOST_UNREACHABLE, "{host} is down"))
        })
    }
}

const QUICK: Pace = Pace {
    patience: Duration::from_millis(50),
    hello: Duration::from_millis(500),
    idle: Duration::from_secs(60),
    retry: Duration::from_millis(10),
    find: Duration::from_millis(300),
};

fn sets(transport: Arc<Fake>) -> Sets {
    Sets { pace: QUICK, ..Sets::new(transport) }
}

fn preference(mode: Mode) -> ReadPreference {
    ReadPreference { mode, ..ReadPreference::default() }
}

fn not_primary() -> Error {
    err!(NOT_WRITABLE_PRIMARY, "not primary")
}

#[tokio::test]
async fn members_are_found_from_one_seed_and_chosen_by_role() {
    let fake = Arc::new(Fake::default());
    fake.say("a:1", "secondary", 0);
    fake.say("b:1", "primary", 1);
    fake.say("c:1", "secondary", 0);
    let sets = sets(fake);
    // `x:1` is a seed that is gone; `b:1` is known from what `a:1` says.
    let connection = "rs/a:1,x:1";
    assert_eq!(sets.find(connection, &preference(Mode::Primary)).await.unwrap(), "b:1");
    for _ in 0..20 {
        assert_ne!(sets.find(connection, &preference(Mode::Secondary)).await.unwrap(), "b:1");
    }
    assert_eq!(sets.find("rs/y:1", &preference(Mode::Secondary)).await.unwrap(), "y:1");
}

#[tokio::test]
async fn an_older_primary_is_not_believed_and_a_newer_one_is_found_after_a_refusal() {
    let fake = Arc::new(Fake::default());
    fake.say("a:1", "primary", 1);
    fake.say("b:1", "secondary", 0);
    fake.say("c:1", "secondary", 0);
    let sets = sets(fake.clone());
    let connection = "rs/a:1,b:1,c:1";
    assert_eq!(sets.find(connection, &preference(Mode::Primary)).await.unwrap(), "a:1");
    fake.say("b:1", "primary", 2);
    // It has not noticed yet that another was elected.
    assert!(sets.note_failure(connection, "a:1", &not_primary(), false));
    tokio::time::sleep(QUICK.patience * 4).await;
    assert_eq!(sets.find(connection, &preference(Mode::Primary)).await.unwrap(), "b:1");
}

#[tokio::test]
async fn a_member_that_does_not_answer_ends_the_calls_under_way_to_it_and_is_chosen_no_more() {
    let fake = Arc::new(Fake::default());
    fake.say("a:1", "primary", 1);
    fake.say("b:1", "secondary", 0);
    let sets = sets(fake.clone());
    let connection = "rs/a:1,b:1";
    assert_eq!(sets.find(connection, &preference(Mode::Secondary)).await.unwrap(), "b:1");
    fake.replies.lock().remove("b:1");
    assert_eq!(sets.guarded(connection, Silence::Of("b:1"), pending::<()>()).await, None);
    assert_eq!(sets.find(connection, &preference(Mode::SecondaryPreferred)).await.unwrap(), "a:1");
    let none = sets.find(connection, &preference(Mode::Secondary)).await.unwrap_err();
    assert_eq!(none.code, codes::FAILED_TO_SATISFY_READ_PREFERENCE);
}

/// A set that is forgotten soon, with `b:1` known as its secondary.
async fn soon_idle() -> (Arc<Fake>, Sets) {
    let fake = Arc::new(Fake::default());
    fake.say("a:1", "primary", 1);
    fake.say("b:1", "secondary", 0);
    let pace = Pace { idle: QUICK.patience * 2, ..QUICK };
    let sets = Sets { pace, ..Sets::new(fake.clone()) };
    assert_eq!(sets.find("rs/a:1,b:1", &preference(Mode::Secondary)).await.unwrap(), "b:1");
    (fake, sets)
}

#[tokio::test]
async fn a_set_is_watched_as_long_as_a_call_is_under_way() {
    let (fake, sets) = soon_idle().await;
    let falls_silent = async {
        // Nothing else uses the set meanwhile.
        tokio::time::sleep(sets.pace.idle * 5).await;
        fake.replies.lock().remove("b:1");
        pending::<()>().await;
    };
    assert_eq!(sets.guarded("rs/a:1,b:1", Silence::Of("b:1"), falls_silent).await, None);
}

#[tokio::test]
async fn a_call_to_a_member_of_a_set_that_was_forgotten_has_it_watched_again() {
    let (fake, sets) = soon_idle().await;
    while !sets.statistics().is_empty() {
        tokio::time::sleep(QUICK.retry).await;
    }
    fake.replies.lock().remove("b:1");
    assert_eq!(sets.guarded("rs/a:1,b:1", Silence::Of("b:1"), pending::<()>()).await, None);
}

#[tokio::test]
async fn a_call_to_what_is_no_member_any_more_is_given_up() {
    let (fake, sets) = soon_idle().await;
    let leaves = async {
        let hosts = vec![document::Value::from("a:1")];
        fake.replies.lock().entry("a:1".to_string()).and_modify(|hello| hello.insert("hosts", hosts));
        pending::<()>().await;
    };
    assert_eq!(sets.guarded("rs/a:1,b:1", Silence::Of("b:1"), leaves).await, None);
}

#[tokio::test]
async fn a_call_to_a_single_host_is_given_up_with_it_where_that_is_wanted() {
    let fake = Arc::new(Fake::default());
    fake.say("a:1", "primary", 1);
    let sets = sets(fake.clone());
    let falls_silent = async {
        tokio::time::sleep(QUICK.patience * 3).await;
        fake.replies.lock().remove("a:1");
        pending::<()>().await;
    };
    assert_eq!(sets.guarded("a:1", Silence::OfAll, falls_silent).await, None);
    let waits = tokio::time::sleep(QUICK.patience * 3);
    assert_eq!(sets.guarded("a:1", Silence::Of("a:1"), waits).await, Some(()), "a client's call waits");
}

#[tokio::test]
async fn a_set_without_a_primary_is_not_silent() {
    let fake = Arc::new(Fake::default());
    fake.say("b:1", "secondary", 0);
    let sets = sets(fake);
    let longer_than_a_hello = tokio::time::sleep(QUICK.hello * 2);
    assert_eq!(sets.guarded("rs/a:1,b:1,c:1", Silence::OfAll, longer_than_a_hello).await, Some(()));
}

#[tokio::test]
async fn what_was_executed_perhaps_is_not_sent_again() {
    let sets = sets(Arc::default());
    let lost = err!(HOST_UNREACHABLE, "the connection broke");
    assert!(!sets.note_failure("rs/a:1,b:1", "a:1", &lost, false));
    assert!(sets.note_failure("rs/a:1,b:1", "a:1", &lost, true));
    assert!(!sets.note_failure("rs/a:1", "a:1", &lost, true), "there is nobody else to ask");
}
