//! Whose the open cursors are, and by which command each came to be.
//!
//! Noted when a reply brings a cursor's id, where authentication is on: a getMore is for the user who opened the cursor, and
//! only as long as that user may still run the command that opened it.

use crate::service::Service;
use document::{Doc, DocBuf};
use node::auth::User;
use parking_lot::Mutex;
use std::collections::HashMap;

struct Owned {
    owner: [u8; 32],
    command: DocBuf,
}

#[derive(Default)]
pub struct Owners(Mutex<State>);

#[derive(Default)]
struct State {
    cursors: HashMap<i64, Owned>,
    /// With this many, those that have ended are looked for.
    prune_at: usize,
}

/// Fewer are not worth a look.
const PRUNE_MIN: usize = 1000;

/// Takes note of the cursor that a reply speaks of.
pub fn note(service: &Service, user: &User, request: Doc<'_>, reply: Doc<'_>) {
    let Some(id) = reply.get_document("cursor").and_then(|c| c.get_i64("id")) else { return };
    let asked = request.get_i64("getMore");
    let mut state = service.auth.cursors.0.lock();
    if let Some(asked) = asked {
        if id == 0 {
            state.cursors.remove(&asked);
        }
        return;
    }
    if id == 0 {
        return;
    }
    state.cursors.insert(id, Owned { owner: user.digest, command: request.to_owned() });
    if state.cursors.len() > state.prune_at.max(PRUNE_MIN) {
        state.cursors.retain(|id, _| is_open(service, *id));
        state.prune_at = state.cursors.len() * 2;
    }
}

fn is_open(service: &Service, id: i64) -> bool {
    match (&service.node, service.members.router()) {
        (Some(node), _) => node.cursors.contains(id),
        (None, Ok(router)) => router.cursors.contains(id),
        _ => false,
    }
}

/// The digest of the user whose cursor it is; `None` where there is no such cursor.
pub fn owner(service: &Service, id: i64) -> Option<[u8; 32]> {
    service.auth.cursors.0.lock().cursors.get(&id).map(|c| c.owner)
}
/// The command that opened the cursor.
pub fn command(service: &Service, id: i64) -> Option<DocBuf> {
    service.auth.cursors.0.lock().cursors.get(&id).map(|c| c.command.clone())
}
