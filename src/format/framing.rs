mod scan;
pub(super) use scan::check_depth;
/// How large a record may be, in bytes, where nothing else is asked for.
pub const MAX_RECORD: usize = 64 << 20;
