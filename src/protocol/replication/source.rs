//! Whom to fetch from, and what the first batch says of the own log.

use super::OpTime;
use super::member::{Member, MemberState};

/// The member to fetch from: up, readable, ahead of `last`, and not denied. First a choice among those that are not hidden,
/// not delayed, and no more than `lag_max` seconds behind the newest entry known of; then among all. The nearest wins.
pub fn choose(member: &Member, last: OpTime, denied: &[usize], lag_max: u64) -> Option<usize> {
    let config = member.config()?;
    if !config.chaining_allowed()
        && let Some(primary) = member.primary()
        && Some(primary) != member.me()
    {
        let ahead = member.peer(primary).is_some_and(|p| p.applied >= last);
        return Some(primary).filter(|i| ahead && !denied.contains(i));
    }
    choose_by(member, last, denied, lag_max, Preference::PrimaryPreferred)
}

/// The member to copy everything from. Where nobody says whom to prefer, a voter spares its set the way over others, and one that does not
/// vote the primary.
pub fn choose_to_copy(
    member: &Member,
    denied: &[usize],
    lag_max: u64,
    preference: Option<Preference>,
) -> Option<usize> {
    match preference {
        Some(preference) => choose_by(member, OpTime::NONE, denied, lag_max, preference),
        None if member.config()?.chaining_allowed() && member.own().is_some_and(|own| !own.votes) => {
            choose_by(member, OpTime::NONE, denied, lag_max, Preference::Nearest)
        }
        None => choose(member, OpTime::NONE, denied, lag_max),
    }
}

/// Which members to copy from, and which of them first. The names are those of read preferences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

impl Preference {
    /// DO NOT CHANGE: `initialSyncSourceReadPreference` is given so. No preference is the empty text.
    pub const NAMES: &[&str] =
        &["", "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];

    pub fn named(name: &str) -> Option<Preference> {
        match name {
            "primary" => Some(Preference::Primary),
            "primaryPreferred" => Some(Preference::PrimaryPreferred),
            "secondary" => Some(Preference::Secondary),
            "secondaryPreferred" => Some(Preference::SecondaryPreferred),
            "nearest" => Some(Preference::Nearest),
            _ => None,
        }
    }
    /// `None`: not that one. Lower goes first.
    fn rank(self, state: MemberState) -> Option<u8> {
        let leads = state == MemberState::Primary;
        match self {
            Preference::Primary => leads.then_some(0),
            Preference::PrimaryPreferred => Some(u8::from(!leads)),
            Preference::Secondary => (!leads).then_some(0),
            Preference::SecondaryPreferred => Some(u8::from(leads)),
            Preference::Nearest => Some(0),
        }
    }
}

fn choose_by(
    member: &Member,
    last: OpTime,
    denied: &[usize],
    lag_max: u64,
    preference: Preference,
) -> Option<usize> {
    let config = member.config()?;
    let newest = member.peers().map(|(_, p)| p.applied).max()?;
    // One that builds indexes learns of them from one that does.
    let builds = member.own().is_none_or(|own| own.build_indexes);
    let able = |strict: bool| {
        let candidates = member.peers().filter(|(i, p)| {
            let Some(m) = config.members().get(*i) else { return false };
            let usable =
                p.up && p.state.is_readable() && m.bears_data() && p.applied > last && !denied.contains(i);
            let usable = usable && (m.build_indexes || !builds);
            let late = (newest.ts >> 32).saturating_sub(p.applied.ts >> 32) > lag_max;
            let own = member.own();
            let fits = !late
                && !m.hidden
                && (m.votes || own.is_none_or(|o| !o.votes))
                && m.delay_secs <= own.map_or(0, |o| o.delay_secs);
            usable && (!strict || fits)
        });
        let ranked = candidates.filter_map(|(i, p)| Some((preference.rank(p.state)?, i, p)));
        ranked.min_by_key(|(rank, i, p)| (*rank, p.ping_ms.unwrap_or(u64::MAX), *i)).map(|(_, i, _)| i)
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

/// Whether another source than that host should be looked for after a batch: one that is gone, or more than `lag_max` seconds late, brings
/// nothing.
pub fn should_change(member: &Member, source: &str, last: OpTime, serving: Serving, lag_max: u64) -> bool {
    let Some(source) = member.index_of(source) else { return true };
    let Some(peer) = member.peer(source) else { return true };
    if !peer.up || (!peer.state.is_readable() && peer.asked >= serving.since) {
        return true;
    }
    // Chains end when the configuration forbids them, and after an election. One that leads and catches up asks anybody.
    let chains = member.primary().is_some_and(|primary| primary != source) && !member.is_leader();
    if chains && member.config().is_some_and(|c| !c.chaining_allowed()) {
        return true;
    }
    let newest = member.peers().map(|(_, p)| p.applied).max().unwrap_or(OpTime::NONE);
    let applied = peer.applied.max(serving.applied);
    let late = (newest.ts >> 32).saturating_sub(applied.ts >> 32) > lag_max;
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
    use super::super::config::SetConfig;
    use super::super::member::Beat;
    use super::*;
    use document::{Value, doc};
    use std::sync::Arc;

    const LAG: u64 = 30;

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
    fn how_late_a_source_may_be_is_said_by_whoever_asks() {
        let lines = ["a:1", "b:1", "c:1"].iter().enumerate();
        let lines = lines.map(|(i, host)| Value::from(doc! { "_id": i as i32, "host": *host }));
        let config = doc! { "_id": "rs", "members": lines.collect::<Vec<Value>>() };
        let mut member = Member::new(None, t(1, 1));
        member.install(Arc::new(SetConfig::parse(&config).unwrap()), Some(0), 1, 0.0);
        let (late, newest) = (t(1, 100 << 32), t(1, 140 << 32));
        for (index, at) in [(1, late), (2, newest)] {
            member.heard_beat(index, Beat::of(MemberState::Secondary, at), index as u64, 1, 0, 0.0);
        }
        let serving = Serving { since: 0, follows: true, applied: late };
        let chosen = |lag| {
            let changes = should_change(&member, "b:1", t(1, 90 << 32), serving, lag);
            (choose(&member, t(1, 50 << 32), &[], lag), changes)
        };
        assert_eq!(chosen(LAG), (Some(2), true));
        for lag in [40, u64::MAX] {
            assert_eq!(chosen(lag), (Some(1), false), "{lag}");
        }
    }

    #[test]
    fn a_source_that_was_removed_is_left_whoever_stands_in_its_place() {
        let config = |hosts: &[&str]| {
            let member = |(i, host): (usize, &&str)| Value::from(doc! { "_id": i as i32, "host": *host });
            let members: Vec<Value> = hosts.iter().enumerate().map(member).collect();
            Arc::new(SetConfig::parse(&doc! { "_id": "rs", "members": members }).unwrap())
        };
        let mut member = Member::new(None, t(1, 1));
        let serving = Serving { since: 0, follows: true, applied: t(1, 2) };
        let hear = |member: &mut Member, index: usize| {
            member.heard_beat(index, Beat::of(MemberState::Secondary, t(1, 2)), 1, 1, 0, 0.0);
        };
        member.install(config(&["a:1", "b:1", "c:1"]), Some(0), 1, 0.0);
        hear(&mut member, 1);
        assert!(!should_change(&member, "b:1", t(1, 2), serving, LAG));
        member.install(config(&["a:1", "c:1"]), Some(0), 2, 0.0);
        hear(&mut member, 1);
        assert!(should_change(&member, "b:1", t(1, 2), serving, LAG));
        assert!(!should_change(&member, "c:1", t(1, 2), serving, LAG));
    }

    /// Heartbeats come seldom, and what they said before is old.
    #[test]
    fn a_source_is_judged_by_what_it_says_while_it_serves() {
        let members =
            document::array![{"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"}, {"_id": 2, "host": "c:1"}];
        let config = Arc::new(SetConfig::parse(&doc! { "_id": "rs", "members": members }).unwrap());
        let leaves = |state: MemberState, since: u64, said: u64| {
            let mut member = Member::new(None, t(1, 1));
            member.install(config.clone(), Some(0), 1, 0.0);
            member.heard_beat(1, Beat { asked: 5, ..Beat::of(state, t(1, 10 << 32)) }, 1, 6, 0, 0.0);
            member.heard_beat(2, Beat::of(MemberState::Primary, t(1, 100 << 32)), 1, 5, 0, 0.0);
            let serving = Serving { since, follows: true, applied: t(1, said << 32) };
            should_change(&member, "b:1", t(1, 99 << 32), serving, LAG)
        };
        assert!(!leaves(MemberState::Secondary, 1, 100));
        assert!(leaves(MemberState::Secondary, 1, 10), "it is far behind");
        assert!(!leaves(MemberState::Recovering, 6, 100), "it was so before it served");
        assert!(leaves(MemberState::Recovering, 5, 100));
    }

    #[test]
    fn a_copy_is_made_from_whom_the_preference_says() {
        let copies_from = |votes: i32, preference: &str| {
            let mine = doc! { "_id": 0, "host": "a:1", "votes": votes, "priority": votes };
            let members = document::array![mine, {"_id": 1, "host": "b:1"}, {"_id": 2, "host": "c:1"}];
            let config = SetConfig::parse(&doc! { "_id": "rs", "members": members }).unwrap();
            let mut member = Member::new(None, OpTime::NONE);
            member.install(Arc::new(config), Some(0), 1, 0.0);
            for (index, state, ping) in [(1, MemberState::Primary, 9), (2, MemberState::Secondary, 1)] {
                member.heard_beat(index, Beat::of(state, t(1, 2)), ping, 1, 0, 0.0);
            }
            let preference = Preference::named(preference);
            [&[][..], &[1], &[2]].map(|denied| choose_to_copy(&member, denied, LAG, preference))
        };
        assert_eq!(copies_from(1, "primary"), [Some(1), None, Some(1)]);
        assert_eq!(copies_from(1, "secondary"), [Some(2), Some(2), None]);
        assert_eq!(copies_from(1, "secondaryPreferred"), [Some(2), Some(2), Some(1)]);
        assert_eq!(copies_from(1, "nearest"), [Some(2), Some(2), Some(1)]);
        // Where nobody says.
        assert_eq!(copies_from(1, ""), [Some(1), Some(2), Some(1)]);
        assert_eq!(copies_from(0, ""), [Some(2), Some(2), Some(1)]);
        assert!(Preference::NAMES[1..].iter().all(|name| Preference::named(name).is_some()));
    }

    #[test]
    fn the_common_point_is_the_newest_entry_equal_in_term_and_time() {
        let own = [t(1, 9), t(1, 7), t(1, 3), t(1, 1)];
        let source = [t(2, 8), t(2, 7), t(1, 3), t(1, 1)];
        assert_eq!(common_point(own, source), Some(t(1, 3)));
        assert_eq!(common_point([t(1, 2)], [t(2, 2)]), None);
    }
}
