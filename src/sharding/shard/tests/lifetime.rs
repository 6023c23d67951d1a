//! When a node of a test is gone: requests that were being served let go of it when they notice that it stops.

use std::sync::Arc;
use std::time::Duration;
use storage::log::{Clock, RealClock};
use tokio::sync::oneshot;

/// Long enough for any machine: a node that is still held then is never let go of.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);

/// The machine's clock, which a node has to itself.
struct OwnClock {
    _node_is_there: oneshot::Sender<()>,
}

impl Clock for OwnClock {
    fn now_millis(&self) -> i64 {
        RealClock.now_millis()
    }
}

/// Comes when everybody has let go of a node.
pub(crate) struct Gone(oneshot::Receiver<()>);

impl Gone {
    pub(crate) async fn wait(self) {
        let gone = tokio::time::timeout(FOREVER, self.0).await;
        assert!(gone.is_ok(), "something holds a node that has crashed");
    }
}

/// The clock for one node, and the end of that node.
pub(crate) fn clock() -> (Arc<dyn Clock>, Gone) {
    let (held, gone) = oneshot::channel();
    (Arc::new(OwnClock { _node_is_there: held }), Gone(gone))
}
