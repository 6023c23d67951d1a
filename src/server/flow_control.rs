//! Flow control: writes of a primary whose majority lags take a ticket each.
//!
//! Once a second the machine in [`protocol::replication::flow_control`] says how many there are for the next one. While it
//! sets no limit a write looks at one flag. A write waits before it has taken any latch of its own, and can be killed there.

use crate::service::Service;
use document::{Document, Result, doc};
use node::operation::Operation;
use node::parameters::Parameters;
use node::replication::{PrimaryService, known};
use parking_lot::Mutex;
use protocol::replication::flow_control::{FlowControl as Controller, Seen, Settings, UNLIMITED};
use runtime::Instant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;

const PERIOD: Duration = Duration::from_secs(1);
/// Lets all that wait through.
const FOR_ALL: usize = 1 << 20;

pub struct FlowControl {
    limited: AtomicBool,
    tickets: Semaphore,
    controller: Mutex<Controller>,
    waited_micros: AtomicU64,
}

impl Default for FlowControl {
    fn default() -> Self {
        FlowControl {
            limited: AtomicBool::new(false),
            tickets: Semaphore::new(0),
            controller: Mutex::default(),
            waited_micros: AtomicU64::new(0),
        }
    }
}

impl FlowControl {
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// Waits for the ticket of one write.
    ///
    /// # Errors
    /// Interrupts.
    pub async fn admit(&self, operation: &Operation) -> Result<()> {
        let began = Instant::now();
        operation.set_waits_for_ticket(true);
        let ticket = operation.interruptible(self.tickets.acquire()).await;
        operation.set_waits_for_ticket(false);
        self.waited_micros.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        // Nothing closes the semaphore.
        if let Ok(ticket) = ticket? {
            ticket.forget();
        }
        Ok(())
    }

    fn hand_out(&self, limit: u64) {
        let limited = limit < UNLIMITED;
        self.limited.store(limited, Ordering::Relaxed);
        // Those that were not taken are not saved up.
        self.tickets.forget_permits(usize::MAX);
        self.tickets.add_permits(if limited { limit as usize } else { FOR_ALL });
    }

    fn end(&self) {
        self.controller.lock().end();
        self.hand_out(UNLIMITED);
    }

    /// The section of serverStatus.
    pub fn status(&self, enabled: bool) -> Document {
        let controller = self.controller.lock();
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        doc! {
            "enabled": enabled,
            "targetRateLimit": i32::try_from(controller.limit).unwrap_or(i32::MAX),
            "timeAcquiringMicros": whole(self.waited_micros.load(Ordering::Relaxed)),
            "locksPerKiloOp": controller.tickets_per_thousand as f64,
            "sustainerRate": i32::try_from(controller.sustainer_rate).unwrap_or(i32::MAX),
            "isLagged": controller.is_lagged,
            "isLaggedCount": i32::try_from(controller.lagged_count).unwrap_or(i32::MAX),
            "isLaggedTimeMicros": whole(controller.lagged_for.as_micros() as u64),
        }
    }
}

/// What limits the writes of a reign.
pub fn service(of: &Arc<Service>) -> PrimaryService {
    let (running, halted) = (Arc::downgrade(of), Arc::downgrade(of));
    let halt = move || {
        if let Some(service) = halted.upgrade() {
            service.flow_control.end();
        }
    };
    PrimaryService {
        halt: Arc::new(halt),
        ..PrimaryService::task("flow control", move || run(running.clone()))
    }
}

async fn run(service: Weak<Service>) {
    let began = Instant::now();
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(service) = service.upgrade() else { return };
        let Some(node) = &service.node else { return };
        // Where this member alone is the majority there is nothing to wait for.
        let applied = known(node.log.last_optime());
        let committed = if node.replication.commit.is_shared() { known(node.committed()) } else { applied };
        let documents = &service.counters.documents;
        let operations = documents.inserted.get() + documents.updated.get() + documents.deleted.get();
        let seen = Seen {
            at: began.elapsed(),
            applied,
            committed,
            operations: operations as u64,
            tickets: service.counters.writes.operations.get() as u64,
        };
        let settings = settings(&service.parameters);
        let limit = service.flow_control.controller.lock().refresh(&settings, seen);
        if limit < UNLIMITED || service.flow_control.is_limited() {
            service.flow_control.hand_out(limit);
        }
    }
}

fn settings(parameters: &Parameters) -> Settings {
    let whole = |name: &str| parameters.int(name).max(0) as u64;
    let real = |name: &str| parameters.get(name).and_then(|v| v.as_f64()).unwrap_or_default();
    Settings {
        enabled: parameters.bool("enableFlowControl"),
        target_lag: Duration::from_secs(whole("flowControlTargetLagSeconds")),
        threshold: real("flowControlThresholdLagPercentage"),
        min_tickets: whole("flowControlMinTicketsPerSecond"),
        adder: whole("flowControlTicketAdderConstant"),
        multiplier: real("flowControlTicketMultiplierConstant"),
        decay: real("flowControlDecayConstant"),
        fudge: real("flowControlFudgeFactor"),
    }
}
