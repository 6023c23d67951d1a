pub(super) struct Shared;
