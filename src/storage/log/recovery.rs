//! Opening.
use super::{OpTime, Position};
/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Oldest position kept.
    pub first_position: Position,
    /// End of the log.
    pub end_position: Position,
    /// Frames given to `replay`.
    pub frames_replayed: u64,
    /// The torn tail that was cut.
    pub torn: Option<TornTail>,
    /// Optime of the newest frame of any class found; the term to rise above.
    pub last_optime: OpTime,
    /// First timestamp that may be handed out.
    pub clock_start: u64,
}
/// What was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// Where the cut was made.
    pub position: Position,
    /// How many bytes, up to the last that was not zero.
    pub bytes: u64,
}
