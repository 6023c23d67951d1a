//! Changing data: the commit ([`unit`]) and the write commands over it.

pub(crate) mod ahead;
pub mod apply_ops;
pub mod aside;
pub mod bulk_write;
pub mod commit;
pub mod delete;
pub mod extras;
pub mod find_and_modify;
pub mod insert;
pub mod refusal;
pub mod retry;
pub mod retry_images;
pub mod shapes;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod unit;
pub mod update;
