//! The bench with adapters that are made up.
