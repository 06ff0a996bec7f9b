//! The table of slab classes, as it is printed.

use std::fmt::Write;

use steelyard::memcache::slabs::Classes;

/// A class a line: number, chunk size, chunks a page.
pub fn classes(classes: &Classes) -> String {
    let mut text = String::from("class    chunk  a page\n");
    for class in classes.all() {
        let _ = writeln!(text, "{:5} {:8} {:7}", class.id, class.chunk, class.per_page);
    }
    text
}
