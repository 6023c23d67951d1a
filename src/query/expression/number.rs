//! Numbers as operators need them.

use document::{Decimal128, Value};

/// A decimal as text.
pub fn decimal_text(d: Decimal128) -> String {
    document::number::decimal_to_string(d)
}
