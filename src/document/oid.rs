//! ObjectId: 4 bytes of seconds, 5 bytes of a per-process random value, 3 bytes of a counter, all big-endian.

use crate::encoding::{from_hex, hex};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Makes ids for one node: `process` is five random bytes, `seconds` come from the caller's clock.
    pub fn generate(generator: &ObjectIdGenerator, seconds: u32) -> ObjectId {
        let mut b = [0; 12];
        b[..4].copy_from_slice(&seconds.to_be_bytes());
        b[4..9].copy_from_slice(&generator.process);
        let n = generator.counter.fetch_add(1, Ordering::Relaxed);
        b[9..].copy_from_slice(&n.to_be_bytes()[1..]);
        ObjectId(b)
    }
    pub fn parse(hex: &str) -> Option<ObjectId> {
        from_hex(hex)?.try_into().ok().map(ObjectId)
    }
    pub fn hex(&self) -> String {
        hex(&self.0)
    }
    pub fn seconds(&self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId('{}')", self.hex())
    }
}

/// The random part and the counter; one for each node, seeded by the caller.
pub struct ObjectIdGenerator {
    process: [u8; 5],
    counter: AtomicU32,
}
impl ObjectIdGenerator {
    pub fn new(seed: [u8; 8]) -> ObjectIdGenerator {
        let process = [seed[0], seed[1], seed[2], seed[3], seed[4]];
        ObjectIdGenerator {
            process,
            counter: AtomicU32::new(u32::from_be_bytes([0, seed[5], seed[6], seed[7]])),
        }
    }
}
