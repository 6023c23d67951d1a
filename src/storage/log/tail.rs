//! The tail.
/// The payload of a frame being appended.
pub struct Payload<'a> {
    bytes: &'a mut Vec<u8>,
}
impl Payload<'_> {
    /// Adds bytes to the payload.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}
