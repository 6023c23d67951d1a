//! Requests that wait for another coordinator's lock, while what they named becomes something else or is changed by another.

use super::*;

impl Cluster {
    /// Sends a command that waits for the lock of `ns`, and lets it go on after `change`.
    async fn while_it_waits(
        &self,
        ns: &str,
        command: Document,
        change: impl Future<Output = ()>,
    ) -> Result<Document> {
        let ddl = self.ddl("a");
        let held = ddl.locks.take(&[ns], "a test").await.unwrap();
        let changed = async {
            while ddl.locks.users(ns) < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            change.await;
            drop(held);
        };
        let (outcome, ()) = tokio::join!(self.send("a", "d", command), changed);
        self.settle().await;
        outcome
    }
    /// Another collection takes the name, with three documents on a.
    async fn replace(&self, ns: &str) {
        self.config(doc! { "_configsvrCommitDropCollection": ns }).await.unwrap();
        for shard in ["a", "b"] {
            let node = self.ddl(shard).role.node.clone();
            node::ddl::collections::drop_collection(&node, &Operation::internal(), ns, false).await.unwrap();
        }
        self.insert("a", ns, 3).await;
    }
    fn uuid(&self, ns: &str) -> Value {
        Value::uuid(self.ddl("a").uuid_here(ns).unwrap())
    }
}

#[tokio::test]
async fn a_collection_named_by_uuid_is_compared_when_it_is_dropped() {
    for ns in ["d.h", "d.plain"] {
        let c = Cluster::new().await;
        c.prepare().await;
        let drop = doc! { "_shardsvrDropCollection": split(ns).1, "collectionUUID": c.uuid(ns) };
        let refused = c.while_it_waits(ns, drop, c.replace(ns)).await.unwrap_err();
        assert_eq!(refused.code, codes::COLLECTION_UUID_MISMATCH, "{ns}");
        assert_eq!(c.count("a", ns), Some(3), "{ns}");
    }
}

#[tokio::test]
async fn a_source_and_a_target_named_by_uuid_are_compared_when_they_are_renamed() {
    for (source, replaced) in
        [("d.h", "d.h"), ("d.h", "d.h2"), ("d.plain", "d.plain"), ("d.plain", "d.other")]
    {
        let c = Cluster::new().await;
        c.prepare().await;
        c.insert("a", "d.other", 1).await;
        let target = if source == "d.h" { "d.h2" } else { "d.other" };
        let rename = doc! {
            "_shardsvrRenameCollection": split(source).1, "to": target, "dropTarget": c.uuid(target),
            "collectionUUID": c.uuid(source),
        };
        let refused = c.while_it_waits(replaced, rename, c.replace(replaced)).await.unwrap_err();
        assert_eq!(refused.code, codes::COLLECTION_UUID_MISMATCH, "{source}, {replaced}");
        assert_eq!(c.count("a", replaced), Some(3), "{source}, {replaced}");
    }
}
