//! Times, which SQLite has none of: they are text, as steelyard writes them.

use rusqlite::{Connection, functions::FunctionFlags};

use crate::record::Time;

/// The function that tells whether a value is a time as they are written here.
pub(super) const IS_TIME: &str = "steelyard_is_time";

/// The time that a text is, if it is one as they are written here.
pub(super) fn time(text: &str) -> Option<Time> {
    // Only then: errors take long to make.
    let may_be = text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[0].is_ascii_digit();
    let time: Time = if may_be { text.parse().ok()? } else { return None };
    (time.to_string() == text).then_some(time)
}

/// Lets a connection's statements ask for [`IS_TIME`].
pub(super) fn teach(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function(IS_TIME, 1, flags, |given| {
        let text = given.get_raw(0).as_str_or_null().ok().flatten();
        Ok(text.is_some_and(|text| time(text).is_some()))
    })
}

/// What to sort a column of times by, and what an index is on. Those of a whole second end in `Z` where others go on:
/// without it they are in their order. What is no text stays what it is.
pub(super) fn in_order_of_time(column: &str) -> String {
    format!("CASE typeof({column}) WHEN 'text' THEN rtrim({column}, 'Z') ELSE {column} END")
}
