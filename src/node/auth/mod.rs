//! Users, roles and what they may do. Pure but for [`store`], which reads and writes the documents of this node.
//!
//! ```text
//! admin.system.users, admin.system.roles -> store -> user (resolved: all roles and privileges) -> privilege::allow
//! ```
//! On a router the resolved document of a user comes from the config server instead; [`user::User`] is made of either.

pub mod action;
pub mod builtin;
pub mod owners;
pub mod privilege;
pub mod resource;
pub mod restriction;
pub mod role;
pub mod store;
pub mod time_proof;
pub mod user;

pub use action::{Action, ActionSet};
pub use owners::Owners;
pub use privilege::{Privilege, Privileges};
pub use resource::{Resource, Target};
pub use role::RoleName;
pub use user::{User, UserName};
