//! UUIDs as BSON binary subtype 4.
use crate::Value;
/// Makes the 16 random bytes a version 4 UUID.
pub fn from_random(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
/// The hyphenated lower-case form.
pub fn to_string(bytes: &[u8; 16]) -> String {
    ::uuid::Uuid::from_bytes(*bytes).hyphenated().to_string()
}
/// Reads the hyphenated form, in either case, and no other.
pub fn parse(s: &str) -> Option<[u8; 16]> {
    Some(s).filter(|s| s.len() == 36).and_then(|s| ::uuid::Uuid::parse_str(s).ok()).map(|u| *u.as_bytes())
}
pub fn value(bytes: [u8; 16]) -> Value {
    Value::uuid(bytes)
}
