//! Whom to fetch from, and what the first batch says of the own log.

use super::OpTime;
use super::member::{Member, MemberState};

/// How far a source may be behind the newest entry known of, in seconds.
const LAG_MAX_SECS: u64 = 30;

/// The member to fetch from: up, readable, ahead of `last`, and not denied. First a choice among those that are not hidden,
/// not late and not delayed; then among all. The nearest wins.
pub fn choose(member: &Member, last: OpTime, denied: &[usize]) -> Option<usize> {
    let config = member.config()?;
    if !config.chaining_allowed()
        && let Some(primary) = member.primary()
        && Some(primary) != member.me()
    {
        let ahead = member.peer(primary).is_some_and(|p| p.applied >= last);
        return Some(primary).filter(|i| ahead && !denied.contains(i));
    }
    let newest = member.peers().map(|(_, p)| p.applied).max()?;
    // One that builds indexes learns of them from one that does.
    let builds = member.own().is_none_or(|own| own.build_indexes);
    let able = |strict: bool| {
        let candidates = member.peers().filter(|(i, p)| {
            let Some(m) = config.members().get(*i) else { return false };
            let usable =
                p.up && p.state.is_readable() && m.bears_data() && p.applied > last && !denied.contains(i);
            let usable = usable && (m.build_indexes || !builds);
            let late = (newest.ts >> 32).saturating_sub(p.applied.ts >> 32) > LAG_MAX_SECS;
            let own = member.own();
            let fits = !late
                && !m.hidden
                && (m.votes || own.is_none_or(|o| !o.votes))
                && m.delay_secs <= own.map_or(0, |o| o.delay_secs);
            usable && (!strict || fits)
        });
        candidates
            .min_by_key(|(i, p)| (p.state != MemberState::Primary, p.ping_ms.unwrap_or(u64::MAX), *i))
            .map(|(i, _)| i)
    };
    able(true).or_else(|| able(false))
}

/// What a source that is fetched from says of itself, which its heartbeats say late.
#[derive(Clone, Copy, Debug)]
pub struct Serving {
    /// When it was first asked, in milliseconds: what it said of its state before is old news.
    pub since: u64,
    /// It fetches from another member itself.
    pub follows: bool,
    /// Its newest entry.
    pub applied: OpTime,
}

/// Whether another source should be looked for after a batch.
pub fn should_change(member: &Member, source: usize, last: OpTime, serving: Serving) -> bool {
    let Some(peer) = member.peer(source) else { return true };
    if !peer.up || (!peer.state.is_readable() && peer.state_told >= serving.since) {
        return true;
    }
    // Chains end when the configuration forbids them, and after an election. One that leads and catches up asks anybody.
    let chains = member.primary().is_some_and(|primary| primary != source) && !member.is_leader();
    if chains && member.config().is_some_and(|c| !c.chaining_allowed()) {
        return true;
    }
    let newest = member.peers().map(|(_, p)| p.applied).max().unwrap_or(OpTime::NONE);
    let applied = peer.applied.max(serving.applied);
    let late = (newest.ts >> 32).saturating_sub(applied.ts >> 32) > LAG_MAX_SECS;
    // A source that neither leads nor fetches from anybody, and is not ahead, brings nothing more.
    let stuck = peer.state != MemberState::Primary && !serving.follows && applied <= last;
    late || (stuck && newest > last)
}

/// What the first entry that a source has at or after this member's newest one means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// It is this member's newest entry: the log goes on from there.
    Continues,
    /// The source has let go of what would come next.
    TooStale,
    /// The source does not have this member's newest entry. Unless the source is behind, the logs part before that entry.
    Diverged,
}

/// Judges the first entry found at or after the time of `last`, knowing the source's oldest one. A source without such an entry may
/// be ahead all the same: a later term can begin at an earlier time, since its primary need not have heard of the entries that are
/// to be rolled back.
pub fn judge(last: OpTime, first: Option<OpTime>, oldest: OpTime) -> First {
    match first {
        Some(first) if first == last => First::Continues,
        Some(_) if oldest.ts > last.ts => First::TooStale,
        _ => First::Diverged,
    }
}

/// The newest entry that two logs share, each given from its end backwards.
pub fn common_point(
    own: impl IntoIterator<Item = OpTime>,
    source: impl IntoIterator<Item = OpTime>,
) -> Option<OpTime> {
    let (mut own, mut source) = (own.into_iter(), source.into_iter());
    let (mut a, mut b) = (own.next()?, source.next()?);
    loop {
        match a.ts.cmp(&b.ts) {
            std::cmp::Ordering::Greater => a = own.next()?,
            std::cmp::Ordering::Less => b = source.next()?,
            std::cmp::Ordering::Equal if a == b => return Some(a),
            std::cmp::Ordering::Equal => (a, b) = (own.next()?, source.next()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(term: i64, ts: u64) -> OpTime {
        OpTime::new(term, ts)
    }

    #[test]
    fn the_first_entry_decides_between_going_on_rollback_and_resync() {
        assert_eq!(judge(t(1, 5), Some(t(1, 5)), t(1, 1)), First::Continues);
        assert_eq!(judge(t(1, 5), Some(t(2, 6)), t(1, 1)), First::Diverged);
        assert_eq!(judge(t(1, 5), Some(t(2, 5)), t(1, 1)), First::Diverged);
        assert_eq!(judge(t(1, 5), Some(t(1, 9)), t(1, 8)), First::TooStale);
        assert_eq!(judge(t(1, 5), None, t(1, 1)), First::Diverged);
    }

    #[test]
    fn the_common_point_is_the_newest_entry_equal_in_term_and_time() {
        let own = [t(1, 9), t(1, 7), t(1, 3), t(1, 1)];
        let source = [t(2, 8), t(2, 7), t(1, 3), t(1, 1)];
        assert_eq!(common_point(own, source), Some(t(1, 3)));
        assert_eq!(common_point([t(1, 2)], [t(2, 2)]), None);
    }
}
