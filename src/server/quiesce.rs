//! Before a node ends: a primary hands the lead over, and clients have a while to go elsewhere.
//!
//! ```text
//! primary of several    steps down, and waits for a member that can take over -> secondary
//! secondary, router     hello refuses (ShutdownInProgress) and says for how long; everything else is served, until the end
//! ```
//! A standalone, and a set of one, have nobody else that could serve their clients, and other members (an arbiter, one that copies or
//! rolls back) have no clients: they end at once.

use crate::service::Service;
use document::{Result, codes};
use node::replication::MemberState;
use node::{Node, Operation};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;

/// How long a node that has handed the lead over does not stand again, should its end take long.
const AWAY_SECS: u64 = 120;
/// How long a signalled primary waits at least for a member that can take over.
const HAND_OVER_MIN: Duration = Duration::from_secs(1);
/// Between two tries, where something else of this node that ends soon is in the way.
const PAUSE: Duration = Duration::from_millis(20);

/// How a node is to end.
pub struct Leave {
    /// How long a primary waits for a member that can take over.
    pub hand_over: Duration,
    /// It ends even where nobody can.
    pub force: bool,
    /// For how long in all clients are served after the end was asked for.
    pub serve: Duration,
}

impl Leave {
    /// As parameters say of a signal.
    pub fn by_signal(service: &Service) -> Leave {
        let name = match service.is_router() {
            true => "mongosShutdownTimeoutMillisForSignaledShutdown",
            false => "shutdownTimeoutMillisForSignaledShutdown",
        };
        let serve = Duration::from_millis(service.parameters.int(name).max(0) as u64);
        let waits = service.parameters.bool("waitForStepDownOnNonCommandShutdown");
        Leave { hand_over: if waits { serve.max(HAND_OVER_MIN) } else { Duration::ZERO }, force: true, serve }
    }
}

/// Returns when the node may end.
///
/// # Errors
/// ExceededTimeLimit (262) where nobody can take over and it is not forced: the node goes on.
pub async fn leave(service: &Arc<Service>, leave: Leave) -> Result<()> {
    let until = Instant::now() + leave.serve;
    if !service.is_router() && !stay_behind(service, &leave, until).await? {
        return Ok(());
    }
    let rest = until.saturating_duration_since(Instant::now());
    if !rest.is_zero() {
        service.topology.quiesce(until);
        tokio::time::sleep(rest).await;
    }
    Ok(())
}

/// The node follows others until then; false where it does not, and ends without more.
async fn stay_behind(service: &Service, leave: &Leave, until: Instant) -> Result<bool> {
    let Some(node) = &service.node else { return Ok(false) };
    while hand_over(node, leave).await? {
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(true);
        }
        // One that stands while it is to go would lead, without clients that follow it.
        match tokio::time::timeout(rest, node.freeze_elections(rest.as_secs() + 1)).await {
            Ok(Err(_)) => tokio::time::sleep(PAUSE).await,
            Ok(Ok(())) | Err(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// Whether there are others that clients can go to from here; none of them lacks what this node has, unless it is forced.
async fn hand_over(node: &Arc<Node>, leave: &Leave) -> Result<bool> {
    let standing = node.replication.standing();
    let members = standing.config.as_ref().map_or(0, |config| config.members().len());
    if members <= 1 || standing.me.is_none() {
        return Ok(false);
    }
    if standing.state != MemberState::Primary {
        return Ok(standing.state == MemberState::Secondary);
    }
    let is_up = |i: usize| node.replication.peer(i).is_some_and(|peer| peer.up);
    if leave.force && !(0..members).any(is_up) {
        return Ok(false);
    }
    match step_down(node, leave).await {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.code, codes::NOT_WRITABLE_PRIMARY | codes::PRIMARY_STEPPED_DOWN) => Ok(true),
        Err(_) if leave.force => Ok(false),
        Err(e) => Err(e),
    }
}

/// Its force is that of the end: it steps down in favour of somebody, or goes as it is. A change of the configuration goes first.
async fn step_down(node: &Arc<Node>, leave: &Leave) -> Result<()> {
    let until = Instant::now() + leave.hand_over;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let seconds = left.as_millis().div_ceil(1000) as u64;
        match node.step_down(&Operation::internal(), AWAY_SECS.max(seconds), seconds, false).await {
            Err(e) if e.code == codes::CONFLICTING_OPERATION_IN_PROGRESS && !left.is_zero() => {
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
