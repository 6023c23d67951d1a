//! The budget of bytes that all messages share.

use super::*;
use crate::{FrameError, FrameReader, Header, InputBudget, encode};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};

const LONG: usize = 40_000_000;

fn connection(budget: &Arc<InputBudget>) -> (DuplexStream, FrameReader<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    (ours, FrameReader::new(theirs).with_budget(budget.clone()))
}

/// The first `length` bytes of a message that claims to have [`LONG`].
fn part(length: usize) -> Vec<u8> {
    let header = Header { message_length: LONG as i32, request_id: 1, response_to: 0, op_code: 2013 };
    let mut bytes = header.to_bytes().to_vec();
    bytes.resize(length, 0);
    bytes
}

#[tokio::test]
async fn a_claimed_length_costs_nothing_until_its_bytes_come() {
    let budget = Arc::new(InputBudget::new(|| 0));
    let mut held = Vec::new();
    for _ in 0..20 {
        let (mut ours, mut reader) = connection(&budget);
        let reading = runtime::spawn(async move { reader.read(&Limits::STANDARD).await.map(drop) });
        ours.write_all(&part(16)).await.unwrap();
        held.push((ours, reading));
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(budget.taken() <= 20 * 128 * 1024, "{}", budget.taken());
    assert!(held.iter().all(|(_, reading)| !reading.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn many_half_sent_messages_stay_within_the_budget_and_give_way_to_a_whole_one() {
    let budget = Arc::new(InputBudget::new(|| 0));
    let mut stuck = Vec::new();
    for _ in 0..4 {
        let (mut ours, mut reader) = connection(&budget);
        let sending = runtime::spawn(async move {
            ours.write_all(&part(2 << 20)).await.ok();
            ours
        });
        let reading = runtime::spawn(async move { reader.read(&Limits::STANDARD).await.map(drop) });
        stuck.push((sending, reading));
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(budget.taken() <= 2 * crate::limits::MAX_MESSAGE);
    // Somebody who sends all of it gets through once the first of them are given up.
    let (mut ours, mut reader) = connection(&budget);
    let mut whole = part(LONG);
    encode::finish(&mut whole, 0);
    let sending = runtime::spawn(async move {
        ours.write_all(&whole).await.ok();
        ours
    });
    let began = Instant::now();
    let read = tokio::time::timeout(Duration::from_secs(20), reader.read(&Limits::STANDARD)).await;
    assert!(matches!(read, Ok(Err(FrameError::Malformed(_)))), "all of it was read: {read:?}");
    assert!(began.elapsed() >= Duration::from_secs(1), "there was room at once");
    drop(reader);
    drop(sending.await);
    for (_, reading) in stuck {
        assert!(matches!(reading.await.unwrap(), Err(FrameError::Io(_))));
    }
    assert_eq!(budget.taken(), 0);
}

#[tokio::test]
async fn other_nodes_never_wait_for_the_budget() {
    let budget = Arc::new(InputBudget::new(|| 0));
    let mut held = Vec::new();
    for _ in 0..2 {
        let (mut ours, mut reader) = connection(&budget);
        reader.trust(true);
        let sending = runtime::spawn(async move { ours.write_all(&part(LONG)).await });
        let read = reader.read(&Limits::STANDARD).await;
        assert!(matches!(read, Err(FrameError::Malformed(_))));
        sending.await.unwrap().ok();
        held.push(reader);
    }
    assert!(budget.taken() >= 2 * LONG);
}

#[tokio::test]
async fn long_compressed_messages_are_decoded_beside_the_thread_that_serves_others() {
    let budget = Arc::new(InputBudget::new(|| 0));
    let mut message = Vec::new();
    encode::msg(&mut message, 1, 0, 0, |w| {
        w.i32("ping", 1);
        w.string("$db", "admin");
        w.string("filler", &"x".repeat(8 << 20));
    });
    crate::op_compressed::compress_in_place(&mut message, 0, Compressor::Zlib, &mut Codecs::default());
    let (mut ours, mut reader) = connection(&budget);
    reader.set_compressors(all());
    ours.write_all(&message).await.unwrap();
    // On one thread: another task runs while the message is decoded.
    let other = runtime::spawn(async { tokio::task::yield_now().await });
    let read = tokio::select! {
        biased;
        read = reader.read(&Limits::STANDARD) => Ok(read),
        done = other => Err(done),
    };
    assert!(read.is_err(), "the message was decoded on the only worker");
}
