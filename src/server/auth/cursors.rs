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
    /// Of their commands.
    bytes: usize,
    /// With this many, or so many bytes, those that have ended are looked for.
    prune_at: (usize, usize),
}

/// Fewer are not worth a look.
const PRUNE_MIN: (usize, usize) = (1000, 16 << 20);

impl State {
    fn insert(&mut self, id: i64, owned: Owned) {
        self.bytes += owned.command.bytes().len();
        if let Some(before) = self.cursors.insert(id, owned) {
            self.bytes -= before.command.bytes().len();
        }
    }
    fn remove(&mut self, id: i64) {
        if let Some(gone) = self.cursors.remove(&id) {
            self.bytes -= gone.command.bytes().len();
        }
    }
    /// Forgets those that are not `open`, where many have come since that was last looked for.
    fn prune(&mut self, open: impl Fn(i64) -> bool) {
        let due = (self.prune_at.0.max(PRUNE_MIN.0), self.prune_at.1.max(PRUNE_MIN.1));
        if self.cursors.len() <= due.0 && self.bytes <= due.1 {
            return;
        }
        self.cursors.retain(|id, _| open(*id));
        self.bytes = self.cursors.values().map(|c| c.command.bytes().len()).sum();
        self.prune_at = (self.cursors.len() * 2, self.bytes * 2);
    }
}

/// Takes note of the cursor that a reply speaks of.
pub fn note(service: &Service, user: &User, request: Doc<'_>, reply: Doc<'_>) {
    let Some(id) = reply.get_document("cursor").and_then(|c| c.get_i64("id")) else { return };
    let asked = request.get_i64("getMore");
    let mut state = service.auth.cursors.0.lock();
    if let Some(asked) = asked {
        if id == 0 {
            state.remove(asked);
        }
        return;
    }
    if id == 0 {
        return;
    }
    state.insert(id, Owned { owner: user.digest, command: request.to_owned() });
    state.prune(|id| is_open(service, id));
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

#[cfg(test)]
mod tests {
    use super::{Owned, State};
    use document::doc;

    #[test]
    fn commands_of_cursors_that_have_ended_are_not_kept() {
        let mut state = State::default();
        for id in 0..100 {
            let command = doc! { "find": "c", "comment": "x".repeat(1 << 20) }.to_doc_buf();
            state.insert(id, Owned { owner: [0; 32], command });
            // Only the first is still open.
            state.prune(|id| id == 0);
            assert!(state.bytes < 34 << 20, "{} bytes", state.bytes);
        }
        assert!(state.cursors.contains_key(&0));
        (0..100).for_each(|id| state.remove(id));
        assert_eq!(state.bytes, 0);
    }
}
