//! The commands of operations: Redis has no plans.

use super::Table;
use crate::store::{Explained, Key, Request, Shape};

impl Table {
    /// The commands of an operation in a layout; none for operations that others are made of.
    pub(super) fn explained(&self, request: Request<'_>, shape: Shape) -> Option<Explained> {
        let full = |key: &Key| self.space.full(key);
        let strings = shape == Shape::Blob;
        let text = match request {
            Request::Get([key]) if strings => format!("GET {}", full(key)),
            Request::Get(keys) if strings => {
                format!("MGET {}", listed(keys.iter().map(full), keys.len(), " "))
            }
            Request::Get(keys) => {
                let each = keys.iter().map(|key| format!("HGETALL {}", full(key)));
                listed(each, keys.len(), "; ")
            }
            Request::Put([row, ..]) if strings => format!("SET {} ...", full(&row.key)),
            Request::Load([row, ..]) if strings => format!("MSETNX {} ...", full(&row.key)),
            Request::Put([row, ..]) | Request::Load([row, ..]) => {
                let key = full(&row.key);
                format!("MULTI; DEL {key}; HSET {key} ...; EXEC")
            }
            Request::Scan(_) => format!("SCAN 0 MATCH {}*", self.space.prefix()),
            _ => return None,
        };
        Some(Explained::new(text))
    }
}

/// The first of some, and how many there are.
fn listed(all: impl Iterator<Item = String>, count: usize, between: &str) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = all.take(SHOWN).collect();
    if count > SHOWN {
        shown.push(format!("... ({count} keys)"));
    }
    shown.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let keys = |n: usize| (0..n).map(|n| n.to_string());
        assert_eq!(listed(keys(2), 2, " "), "0 1");
        assert_eq!(listed(keys(7), 7, "; "), "0; 1; 2; 3; 4; ... (7 keys)");
    }
}
