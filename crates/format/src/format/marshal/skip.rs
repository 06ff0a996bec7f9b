//! Skips values without recursion.

use super::{reader::Reader, text::Text};
use crate::Result;

/// What is left to skip.
enum Todo {
    /// So many values.
    Values(usize),
    /// So many pairs of a symbol and a value.
    Pairs(usize),
    /// A count, and so many pairs.
    Variables,
    /// Nothing to skip, but an object to enter in the table.
    Enter(usize),
}

impl<'de, T: Text<'de>> Reader<'de, T> {
    /// Passes over the value here, entering what is in it in the tables; without recursion.
    pub fn skip(&mut self) -> Result<()> {
        self.skip_all(Todo::Values(1))
    }

    pub(super) fn skip_variables(&mut self) -> Result<()> {
        self.skip_all(Todo::Variables)
    }

    fn skip_all(&mut self, todo: Todo) -> Result<()> {
        // Each entry was paid for by a byte or more of the input.
        let mut stack = Vec::new();
        let mut now = todo;
        loop {
            match now {
                Todo::Values(0) | Todo::Pairs(0) => {}
                Todo::Enter(start) => self.enter(start),
                Todo::Variables => {
                    now = Todo::Pairs(self.count(2)?);
                    continue;
                }
                Todo::Values(n) => {
                    if n > 1 {
                        stack.push(Todo::Values(n - 1));
                    }
                    self.skip_one(&mut stack)?;
                }
                Todo::Pairs(n) => {
                    self.symbol()?;
                    if n > 1 {
                        stack.push(Todo::Pairs(n - 1));
                    }
                    self.skip_one(&mut stack)?;
                }
            }
            match stack.pop() {
                Some(next) => now = next,
                None => return Ok(()),
            }
        }
    }

    /// Passes over a value's head, and puts what is left of it on the stack.
    #[inline]
    fn skip_one(&mut self, stack: &mut Vec<Todo>) -> Result<()> {
        let start = self.pos;
        let mut variables = false;
        loop {
            let at = self.pos;
            let tag = self.byte()?;
            match tag {
                b'0' | b'T' | b'F' => return Ok(()),
                b'i' => return self.long().map(drop),
                b'@' if at == start => {
                    self.pos = at;
                    let (n, target) = self.link()?;
                    return match target {
                        None => Err(self.dangling(at, n)),
                        Some(_) => Ok(()),
                    };
                }
                b':' => return self.new_symbol(variables).map(drop),
                b';' => {
                    self.pos = at;
                    return self.symbol().map(drop);
                }
                b'I' if !variables => {
                    variables = true;
                    continue;
                }
                b'e' | b'C' => {
                    self.symbol()?;
                    continue;
                }
                _ => {}
            }
            // What Ruby counts after all that belongs to it goes on the stack first.
            let late = tag == b'u';
            if late {
                stack.push(Todo::Enter(start));
            } else {
                self.enter(start);
            }
            if variables {
                stack.push(Todo::Variables);
            }
            match tag {
                b'"' | b'f' | b'c' | b'm' | b'M' => drop(self.bytes()?),
                b'/' => {
                    self.bytes()?;
                    self.byte()?;
                }
                b'l' => {
                    self.sign()?;
                    let words = self.count(2)?;
                    self.take(words * 2)?;
                }
                b'[' => {
                    let n = self.count(1)?;
                    stack.push(Todo::Values(n));
                }
                b'{' => {
                    let n = self.count(2)?;
                    stack.push(Todo::Values(2 * n));
                }
                b'}' => {
                    let n = self.count(2)?;
                    stack.push(Todo::Values(2 * n + 1));
                }
                b'o' | b'S' => {
                    self.symbol()?;
                    let n = self.count(2)?;
                    stack.push(Todo::Pairs(n));
                }
                b'u' => {
                    self.symbol()?;
                    self.bytes()?;
                }
                b'U' | b'd' => {
                    self.symbol()?;
                    stack.push(Todo::Values(1));
                }
                _ => return Err(self.unknown(at, tag)),
            }
            return Ok(());
        }
    }
}
