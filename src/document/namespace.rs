//! What the name of a database says.

/// Whether it is one of the three that every deployment has for itself: none of them is sharded, copied or watched as a
/// user's.
pub fn is_internal_database(db: &str) -> bool {
    matches!(db, "admin" | "config" | "local")
}
