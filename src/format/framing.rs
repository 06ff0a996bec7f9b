mod scan;
pub(super) use scan::check_depth;
