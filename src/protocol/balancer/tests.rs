//! The policy as a table: what it sees, what it does.

use super::*;
use document::doc;

/// `shards`: name, bytes, flags (`d` draining, `z` zone z). `chunks`: shard names in key order, `!` jumbo, `@` zone z.
fn collection(shards: &[(&str, i64, &str)], chunks: &[&str]) -> CollectionView {
    let zone = |flags: &str| flags.contains('z').then(|| "z".to_string()).into_iter().collect();
    CollectionView {
        ns: "d.c".into(),
        max_chunk_bytes: 10,
        shards: shards
            .iter()
            .map(|(name, bytes, flags)| ShardLoad {
                shard: name.to_string(),
                draining: flags.contains('d'),
                zones: zone(flags),
                bytes: *bytes,
            })
            .collect(),
        chunks: chunks
            .iter()
            .enumerate()
            .map(|(i, c)| ChunkView {
                min: doc! { "x": i as i32 },
                max: doc! { "x": i as i32 + 1 },
                shard: c.trim_end_matches(['!', '@']).to_string(),
                jumbo: c.contains('!'),
                zone: c.contains('@').then(|| "z".to_string()),
            })
            .collect(),
        balanced: true,
        move_jumbo: false,
    }
}

/// `from>to:first value of min:reason`.
fn moves(c: &CollectionView) -> Vec<String> {
    select(c, &mut BTreeSet::new())
        .iter()
        .map(|m| format!("{}>{}:{}:{}", m.from, m.to, m.min.get_i64("x").unwrap(), m.reason.name()))
        .collect()
}

#[test]
fn below_three_chunk_sizes_nothing_moves_and_at_three_it_does() {
    assert!(moves(&collection(&[("a", 29, ""), ("b", 0, "")], &["a"])).is_empty());
    assert_eq!(moves(&collection(&[("a", 30, ""), ("b", 0, "")], &["a"])), ["a>b:0:chunksImbalance"]);
}

#[test]
fn each_shard_takes_part_in_one_migration() {
    let c = collection(&[("a", 100, ""), ("b", 90, ""), ("c", 0, ""), ("d", 5, "")], &["a", "b", "c", "d"]);
    assert_eq!(moves(&c), ["a>c:0:chunksImbalance", "b>d:1:chunksImbalance"]);
    let mut busy = BTreeSet::from(["a".to_string(), "c".to_string()]);
    assert_eq!(select(&c, &mut busy).iter().map(|m| m.from.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn jumbo_chunks_stay_and_the_next_donor_is_asked() {
    let c = collection(&[("a", 100, ""), ("b", 90, ""), ("c", 0, "")], &["a!", "b"]);
    assert_eq!(moves(&c), ["b>c:1:chunksImbalance"]);
    assert!(moves(&collection(&[("a", 100, ""), ("c", 0, "")], &["a!"])).is_empty());
}

#[test]
fn a_draining_shard_goes_first_whatever_the_load() {
    let c = collection(&[("a", 1, "d"), ("b", 50, ""), ("c", 20, "")], &["a", "b"]);
    assert_eq!(moves(&c), ["a>c:0:draining"]);
    assert_eq!(violation(&c), Some(Reason::Draining));
    let stuck = collection(&[("a", 1, "d"), ("b", 1, "")], &["a!", "b"]);
    assert!(moves(&stuck).is_empty());
    assert_eq!(violation(&stuck), Some(Reason::Draining));
    let mut forced = stuck;
    forced.move_jumbo = true;
    assert_eq!(moves(&forced), ["a>b:0:draining"]);
}

#[test]
fn a_draining_shard_receives_nothing() {
    assert!(moves(&collection(&[("a", 100, ""), ("b", 0, "d")], &["a"])).is_empty());
}

#[test]
fn a_chunk_of_a_zone_goes_to_a_shard_of_the_zone() {
    let c = collection(&[("a", 10, ""), ("b", 10, "z"), ("c", 5, "z")], &["a@", "a"]);
    assert_eq!(moves(&c), ["a>c:0:zoneViolation"]);
    assert_eq!(violation(&c), Some(Reason::ZoneViolation));
}

#[test]
fn within_a_zone_only_its_shards_count() {
    let c = collection(&[("a", 0, ""), ("b", 100, "z"), ("c", 60, "z")], &["b@", "c@"]);
    assert_eq!(moves(&c), ["b>c:0:chunksImbalance"]);
}

#[test]
fn a_collection_without_balancing_is_only_drained() {
    let mut c = collection(&[("a", 100, ""), ("b", 0, "")], &["a"]);
    c.balanced = false;
    assert!(moves(&c).is_empty());
    assert_eq!(violation(&c), None);
    c.shards[0].draining = true;
    assert_eq!(moves(&c), ["a>b:0:draining"]);
}

#[test]
fn repeated_rounds_end() {
    let mut c = collection(&[("a", 1000, ""), ("b", 0, ""), ("c", 0, "")], &["a", "b", "c"]);
    for round in 0.. {
        assert!(round < 500, "the balancer does not come to rest");
        let chosen = select(&c, &mut BTreeSet::new());
        if chosen.is_empty() {
            break;
        }
        for m in chosen {
            take(&mut c.shards, &mut BTreeSet::new(), &m.from, &m.to, c.max_chunk_bytes);
        }
    }
    let (low, high) = (c.shards.iter().map(|s| s.bytes).min(), c.shards.iter().map(|s| s.bytes).max());
    assert!(high.unwrap() - low.unwrap() < 30, "{:?}", c.shards);
}
