//! The check every document passes when it enters.
use crate::Result;
/// Levels of documents and arrays, the outermost counted.
pub const DEPTH_MAX: usize = 200;
/// What a document may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes_max: usize,
    pub depth_max: usize,
}
impl Limits {
    /// A document a client stores: 16 MiB.
    pub const USER: Limits = Limits { bytes_max: 16 * 1024 * 1024, depth_max: DEPTH_MAX };
    /// A document of the system itself: 16 KiB more.
    pub const INTERNAL: Limits = Limits { bytes_max: 16 * 1024 * 1024 + 16 * 1024, depth_max: DEPTH_MAX };
    /// A whole message body: 48,000,000 bytes.
    pub const MESSAGE: Limits = Limits { bytes_max: 48_000_000, depth_max: DEPTH_MAX };
}
/// `bytes` is exactly one valid document. Errors: InvalidBSON, Overflow (depth), BSONObjectTooLarge.
pub fn validate(_bytes: &[u8], _limits: Limits) -> Result<()> {
    todo!()
}
/// The length of the valid document `bytes` begins with; there may be more behind it.
pub fn validate_prefix(_bytes: &[u8], _limits: Limits) -> Result<usize> {
    todo!()
}
