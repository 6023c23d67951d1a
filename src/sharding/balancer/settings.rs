//! Whether and how the balancer may work: `config.settings` and parameters, read anew each time.

use crate::config::ConfigServer;
use crate::config::catalog::Sharded;
use document::{Document, Value};
use protocol::balancer::{Policy, window};
use std::time::Duration;

/// `full`, `autoSplitOnly` (chunks may be split as they grow, nothing is moved) or `off`, as the settings say.
pub(super) fn mode(settings: &Document) -> &'static str {
    let stopped = settings.get("stopped").is_some_and(Value::truthy);
    match settings.get_str("mode") {
        Some("off") => "off",
        _ if stopped => "off",
        Some("autoSplitOnly") => "autoSplitOnly",
        _ => "full",
    }
}

impl ConfigServer {
    pub(super) fn balancer_settings(&self) -> Document {
        self.setting("balancer").unwrap_or_default()
    }

    /// Neither stopped nor outside the active window.
    pub(crate) fn balancing_now(&self) -> bool {
        let settings = self.balancer_settings();
        if mode(&settings) != "full" {
            return false;
        }
        let Some(times) = settings.get_document("activeWindow") else { return true };
        let time = |name: &str| times.get_str(name).unwrap_or_default();
        window::holds(time("start"), time("stop"), self.node.local_ms())
    }

    pub(super) fn balancer_policy(&self) -> Policy {
        Policy::parse(&self.parameters.text("balancerPolicy")).unwrap_or_default()
    }
    pub(super) fn millis(&self, parameter: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.parameters.int(parameter)).unwrap_or(0))
    }

    /// Sharded collections that have chunks to move.
    pub(super) fn splittable(&self) -> Vec<Sharded> {
        self.catalog().collections().into_iter().filter(|c| !c.is_unsplittable()).collect()
    }
}
