//! Readers.
use super::{FrameRef, LogError, Position};
/// Reads frames forward.
pub struct LogReader {}
impl LogReader {
    /// The next frame, or none at the end for now.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        todo!()
    }
    /// The next frame if it ends at or before `limit`.
    pub fn next_before(&mut self, limit: Position) -> Result<Option<FrameRef<'_>>, LogError> {
        let _ = limit;
        todo!()
    }
    /// Where the next frame begins.
    pub fn position(&self) -> Position {
        todo!()
    }
}
/// Reads frames backwards.
pub struct ReverseReader {}
impl ReverseReader {
    /// The frame before the one read last.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        todo!()
    }
}
