//! Proofs of cluster times: what keeps a client from pushing the clocks of a cluster ahead with a time of its own making.
//!
//! ```text
//! admin.system.keys  { _id: long, purpose: "HMAC", key: 20 bytes, expiresAt: timestamp }
//! proof              HMAC-SHA1(key, 8 bytes, little-endian, of time | 0xFFFF)
//! ```
//! One proof covers 65,536 ticks of the clock, so that it is made about once a second. DO NOT CHANGE: other nodes check it.

use document::{Document, Timestamp, Value};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

pub type Proof = [u8; 20];

/// The ticks that one proof covers.
const COVERED: u64 = 0xFFFF;

/// A key of `admin.system.keys`.
#[derive(Clone)]
pub struct TimeKey {
    id: i64,
    secret: [u8; 20],
    expires: Timestamp,
}

/// What goes with a time: `{hash, keyId}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    pub hash: Proof,
    pub key_id: i64,
}

impl Signature {
    /// What nodes that need not prove anything send.
    pub const NONE: Signature = Signature { hash: [0; 20], key_id: 0 };
}

impl TimeKey {
    pub fn of_stored(d: &Document) -> Option<TimeKey> {
        let Some(Value::Binary(key)) = d.get("key") else { return None };
        Some(TimeKey {
            id: d.get_i64("_id")?,
            secret: key.bytes.as_slice().try_into().ok()?,
            expires: d.get("expiresAt")?.as_timestamp()?,
        })
    }
    fn mac(&self, time: Timestamp) -> Hmac<Sha1> {
        // Keys of any length are taken.
        let mut mac = Hmac::<Sha1>::new_from_slice(&self.secret).unwrap_or_else(|_| unreachable!());
        mac.update(&covering(time).to_le_bytes());
        mac
    }
    fn proof(&self, time: Timestamp) -> Proof {
        self.mac(time).finalize().into_bytes().into()
    }
    /// Whether the proof is this key's for the time, in constant time.
    pub fn has_signed(&self, time: Timestamp, hash: &Proof) -> bool {
        self.mac(time).verify_slice(hash).is_ok()
    }
}

/// The last time that one proof covers, which stands for all of them.
pub fn covering(time: Timestamp) -> u64 {
    time.as_u64() | COVERED
}

/// The keys of a cluster, by the time they expire.
#[derive(Default)]
pub struct KeyRing(Vec<TimeKey>);

impl KeyRing {
    pub fn new(mut keys: Vec<TimeKey>) -> KeyRing {
        keys.sort_by_key(|key| key.expires);
        KeyRing(keys)
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Signed by the key that expires next; `None` where there is none.
    pub fn sign(&self, time: Timestamp) -> Option<Signature> {
        let key = self.0.iter().find(|key| key.expires > time)?;
        Some(Signature { hash: key.proof(time), key_id: key.id })
    }
    /// The key of this id, if it may still sign such a time.
    pub fn key(&self, id: i64, time: Timestamp) -> Option<&TimeKey> {
        self.0.iter().find(|key| key.id == id && key.expires > time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Binary, doc};

    fn key(id: i64, expires: u32) -> TimeKey {
        let secret: Vec<u8> = (0..20).collect();
        let key = Value::Binary(Binary { subtype: 0, bytes: secret });
        let expires = Timestamp { secs: expires, inc: 0 };
        TimeKey::of_stored(&doc! {"_id": id, "purpose": "HMAC", "key": key, "expiresAt": expires}).unwrap()
    }

    #[test]
    fn a_proof_covers_sixty_five_thousand_ticks() {
        let ring = KeyRing::new(vec![key(7, 2_000_000_000)]);
        let at = |inc| ring.sign(Timestamp { secs: 1_700_000_000, inc }).unwrap();
        let hex = |s: Signature| document::encoding::hex(&s.hash);
        assert_eq!(hex(at(1)), "ed1f6fc18dfd2b0fd969600cd44d5ec2b4154f79");
        assert_eq!(at(1), at(65_535));
        assert_eq!(hex(at(65_536)), "ad6dc3a6ddbe8d5f41bf4fe4dc38843401b95f98");
    }

    #[test]
    fn the_key_that_expires_next_signs_and_an_expired_one_signs_nothing() {
        let ring = KeyRing::new(vec![key(2, 200), key(1, 100)]);
        let signer = |secs| ring.sign(Timestamp { secs, inc: 1 }).map(|s| s.key_id);
        assert_eq!([signer(50), signer(100), signer(200)], [Some(1), Some(2), None]);
        let late = Timestamp { secs: 150, inc: 1 };
        assert!(ring.key(1, late).is_none() && ring.key(3, late).is_none());
        let signed = ring.sign(late).unwrap();
        let second = ring.key(2, late).unwrap();
        assert!(second.has_signed(late, &signed.hash) && !second.has_signed(late, &Signature::NONE.hash));
    }
}
