//! Executes the opcodes that build data.
//!
//! One pass, no recursion: each opcode that makes a value adds a node and puts its number on the
//! stack; a list or map chains those that are put into it. At most one node, one stack entry and
//! one memo entry for each byte of the pickle.

use super::{
    natives::{self, Maker},
    old,
    ops::{self, *},
    tape::{Kind, Node, Tape},
};
use crate::{Error, ErrorKind, Result, format::objects::limits::Budget};

/// No memo under this number.
const NOTHING: u32 = u32::MAX;

/// The state of a run.
pub(super) struct Machine<'de> {
    pub tape: Tape<'de>,
    pub pos: usize,
    /// Where the opcode being run stands.
    at: usize,
    stack: Vec<u32>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: Vec<u32>,
    /// How many entries the memo has.
    memoized: usize,
}

/// Runs the pickle that is `input`, and nothing else.
pub(super) fn run(input: &[u8]) -> Result<Tape<'_>> {
    if u32::try_from(input.len()).is_err() {
        return Err(Error::new(ErrorKind::TooLarge, "a pickle over 4 GiB"));
    }
    // A guess that spares most records growing the tables.
    let room = (input.len() / 4 + 8).min(4096);
    let mut nodes = Vec::with_capacity(room);
    nodes.push(Node::new(Kind::Null, 0, 0));
    let tape =
        Tape { input, nodes, unescaped: Vec::new(), root: 0, budget: Budget::new(input.len()) };
    let mut machine = Machine {
        tape,
        pos: 0,
        at: 0,
        stack: Vec::with_capacity(64),
        marks: Vec::with_capacity(16),
        memo: Vec::with_capacity(room.min(256)),
        memoized: 0,
    };
    machine.run()?;
    Ok(machine.tape)
}

impl<'de> Machine<'de> {
    #[cold]
    pub(super) fn wrong(&self, what: &str) -> Error {
        let name = self.tape.input.get(self.at).and_then(|&code| ops::find(code));
        let name = name.map_or("the end", |op| op.name);
        Error::malformed(format!("{name}: {what}")).at(self.at as u64)
    }

    #[cold]
    fn short(&self) -> Error {
        self.wrong("the bytes end inside the pickle")
    }

    #[inline]
    fn take(&mut self, n: usize) -> Result<&'de [u8]> {
        match self.tape.input.get(self.pos..).and_then(|rest| rest.get(..n)) {
            Some(bytes) => {
                self.pos += n;
                Ok(bytes)
            }
            None => Err(self.short()),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.tape.input.get(self.pos..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => {
                self.pos += N;
                Ok(*bytes)
            }
            None => Err(self.short()),
        }
    }

    /// The rest of a line, without its end.
    pub(super) fn line(&mut self) -> Result<&'de [u8]> {
        let rest = &self.tape.input[self.pos..];
        match memchr::memchr(b'\n', rest) {
            Some(n) => {
                self.pos += n + 1;
                Ok(&rest[..n])
            }
            None => Err(self.short()),
        }
    }

    /// A new value on the stack. The one below is told what came after it, in case both become
    /// items of the same list.
    #[inline]
    pub(super) fn push(&mut self, node: Node) {
        let n = self.tape.nodes.len() as u32;
        if let Some(&below) = self.stack.last() {
            self.tape.nodes[below as usize].next = n;
        }
        self.stack.push(n);
        self.tape.nodes.push(node);
    }

    /// A value of `len` bytes from here on.
    #[inline]
    fn push_span(&mut self, kind: Kind, len: usize) -> Result<()> {
        let from = self.pos;
        self.take(len)?;
        self.push(Node::new(kind, from as u32, len as u32));
        Ok(())
    }

    #[inline]
    fn length4(&mut self) -> Result<usize> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn length8(&mut self) -> Result<usize> {
        let n = u64::from_le_bytes(self.array()?);
        usize::try_from(n).map_err(|_| self.short())
    }

    /// The values above the last mark, which goes.
    #[inline]
    fn unmark(&mut self) -> Result<usize> {
        match self.marks.pop() {
            Some(mark) if mark <= self.stack.len() => Ok(mark),
            _ => Err(self.wrong("no mark to go back to")),
        }
    }

    /// Takes `n` values off the stack, but none from below the last mark.
    #[inline]
    fn top(&self, n: usize) -> Result<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(n) {
            Some(from) if from >= floor => Ok(from),
            _ => Err(self.wrong("too few values on the stack")),
        }
    }

    /// Makes a list or map of the values from `from` on.
    #[inline]
    fn gather(&mut self, kind: Kind, from: usize) -> Result<()> {
        let mut node = Node::new(kind, 0, 0);
        self.chain(&mut node, from)?;
        self.push(node);
        Ok(())
    }

    /// Puts the values from `from` on into the list or map below them.
    #[inline]
    fn put_into(&mut self, kind: Kind, from: usize) -> Result<()> {
        let Some(below) = from.checked_sub(1) else {
            return Err(self.wrong("nothing to put values into"));
        };
        let mut into = self.stack[below] as usize;
        let mut node = self.tape.nodes[into];
        if node.kind == Kind::Link {
            into = node.a as usize;
            node = self.tape.nodes[into];
        }
        if node.kind != kind {
            return Err(self.wrong("what is below the values is not what they can be put into"));
        }
        self.chain(&mut node, from)?;
        let into = &mut self.tape.nodes[into];
        (into.a, into.b, into.count) = (node.a, node.b, node.count);
        Ok(())
    }

    /// Chains the values from `from` on to the items of `node`, and takes them off the stack.
    #[inline]
    fn chain(&mut self, node: &mut Node, from: usize) -> Result<()> {
        let items = &self.stack[from..];
        if node.kind == Kind::Map && items.len() % 2 == 1 {
            return Err(self.wrong("a key without a value"));
        }
        let (Some(&first), Some(&last)) = (items.first(), items.last()) else { return Ok(()) };
        // They are chained already; but the last may have had another above it, since popped.
        self.tape.nodes[last as usize].next = 0;
        match node.a {
            0 => node.a = first,
            _ => self.tape.nodes[node.b as usize].next = first,
        }
        node.b = last;
        let count = if node.kind == Kind::Map { items.len() / 2 } else { items.len() };
        node.count = node.count.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
        self.stack.truncate(from);
        Ok(())
    }

    /// Puts a value that was made before on the stack again.
    #[inline]
    fn push_again(&mut self, n: u32) -> Result<()> {
        let node = self.tape.nodes[n as usize];
        let again = match node.kind {
            Kind::List | Kind::Map => Node::new(Kind::Link, n, 0),
            Kind::Link => Node::new(Kind::Link, node.a, 0),
            Kind::Text
            | Kind::Either
            | Kind::Bytes
            | Kind::Unescaped
            | Kind::UnescapedEither
            | Kind::Long
            | Kind::Digits
            | Kind::Decimal => {
                self.tape.budget.spend(8 + node.b as usize).map_err(|e| e.at(self.at as u64))?;
                node
            }
            _ => node,
        };
        self.push(Node { next: 0, ..again });
        Ok(())
    }

    #[inline]
    pub(super) fn get(&mut self, n: usize) -> Result<()> {
        match self.memo.get(n) {
            Some(&node) if node != NOTHING => self.push_again(node),
            _ => Err(self.wrong("nothing was memoized under this number")),
        }
    }

    #[inline]
    pub(super) fn put(&mut self, n: usize) -> Result<()> {
        let top = self.stack[self.top(1)?];
        if n == self.memo.len() {
            self.memo.push(top);
            self.memoized += 1;
            return Ok(());
        }
        if n > self.tape.input.len() {
            return Err(self.wrong("memoized under a number larger than the pickle"));
        }
        if n > self.memo.len() {
            self.memo.resize(n + 1, NOTHING);
        }
        self.memoized += usize::from(self.memo[n] == NOTHING);
        self.memo[n] = top;
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        loop {
            self.at = self.pos;
            let Some(&code) = self.tape.input.get(self.pos) else { return Err(self.short()) };
            self.pos += 1;
            // Most opcodes are these: told apart by a branch of their own.
            if code == SHORT_BINUNICODE {
                let [len] = self.array()?;
                self.push_span(Kind::Text, len.into())?;
                if self.tape.input.get(self.pos) == Some(&MEMOIZE) {
                    self.pos += 1;
                    self.put(self.memoized)?;
                }
                continue;
            }
            match code {
                MEMOIZE => self.put(self.memoized)?,
                BINGET => {
                    let [n] = self.array()?;
                    self.get(n.into())?;
                }
                MARK => self.marks.push(self.stack.len()),
                EMPTY_DICT => self.push(Node::new(Kind::Map, 0, 0)),
                EMPTY_LIST | EMPTY_TUPLE | EMPTY_SET => self.push(Node::new(Kind::List, 0, 0)),
                SETITEMS => {
                    let from = self.unmark()?;
                    self.put_into(Kind::Map, from)?;
                }
                SETITEM => self.put_into(Kind::Map, self.top(2)?)?,
                APPENDS | ADDITEMS => {
                    let from = self.unmark()?;
                    self.put_into(Kind::List, from)?;
                }
                APPEND => self.put_into(Kind::List, self.top(1)?)?,
                LONG_BINGET => {
                    let n = self.length4()?;
                    self.get(n)?;
                }
                BINPUT => {
                    let [n] = self.array()?;
                    self.put(n.into())?;
                }
                LONG_BINPUT => {
                    let n = self.length4()?;
                    self.put(n)?;
                }
                BINUNICODE => {
                    let len = self.length4()?;
                    self.push_span(Kind::Text, len)?;
                }
                BINUNICODE8 => {
                    let len = self.length8()?;
                    self.push_span(Kind::Text, len)?;
                }
                NONE => self.push(Node::new(Kind::Null, 0, 0)),
                NEWTRUE => self.push(Node::new(Kind::True, 0, 0)),
                NEWFALSE => self.push(Node::new(Kind::False, 0, 0)),
                BININT1 => {
                    let [v] = self.array()?;
                    self.push(Node::wide(Kind::Int, v.into()));
                }
                BININT2 => {
                    let v = u16::from_le_bytes(self.array()?);
                    self.push(Node::wide(Kind::Int, v.into()));
                }
                BININT => {
                    let v = i32::from_le_bytes(self.array()?);
                    self.push(Node::wide(Kind::Int, i64::from(v) as u64));
                }
                LONG1 => {
                    let [len] = self.array()?;
                    self.push_long(len.into())?;
                }
                LONG4 => {
                    let len = self.length4()?;
                    self.push_long(len)?;
                }
                BINFLOAT => {
                    let bits = u64::from_be_bytes(self.array()?);
                    self.push(Node::wide(Kind::Float, bits));
                }
                TUPLE1 => self.gather(Kind::List, self.top(1)?)?,
                TUPLE2 => self.gather(Kind::List, self.top(2)?)?,
                TUPLE3 => self.gather(Kind::List, self.top(3)?)?,
                TUPLE | LIST | FROZENSET => {
                    let from = self.unmark()?;
                    self.gather(Kind::List, from)?;
                }
                DICT => {
                    let from = self.unmark()?;
                    self.gather(Kind::Map, from)?;
                }
                SHORT_BINBYTES => {
                    let [len] = self.array()?;
                    self.push_span(Kind::Bytes, len.into())?;
                }
                BINBYTES => {
                    let len = self.length4()?;
                    self.push_span(Kind::Bytes, len)?;
                }
                BINBYTES8 | BYTEARRAY8 => {
                    let len = self.length8()?;
                    self.push_span(Kind::Bytes, len)?;
                }
                SHORT_BINSTRING => {
                    let [len] = self.array()?;
                    self.push_span(Kind::Either, len.into())?;
                }
                BINSTRING => {
                    let len = self.length4()?;
                    self.push_span(Kind::Either, len)?;
                }
                PROTO => {
                    let [version] = self.array()?;
                    if version > 5 {
                        return Err(self.wrong(&format!("protocol {version}; known: 0 to 5")));
                    }
                }
                FRAME => {
                    // The frame's end is of no consequence to bytes that are all there.
                    let len = self.length8()?;
                    if len > self.tape.input.len() - self.pos {
                        return Err(self.short());
                    }
                }
                POP => match self.marks.last() {
                    Some(&mark) if mark == self.stack.len() => drop(self.marks.pop()),
                    _ => {
                        let from = self.top(1)?;
                        self.stack.truncate(from);
                    }
                },
                POP_MARK => {
                    let from = self.unmark()?;
                    self.stack.truncate(from);
                }
                DUP => {
                    let top = self.stack[self.top(1)?];
                    self.push_again(top)?;
                }
                GLOBAL => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.push_maker(code, module, name)?;
                }
                STACK_GLOBAL => {
                    let from = self.top(2).map_err(|_| ops::refused(code, self.at))?;
                    let [module, name] = [from, from + 1].map(|n| self.tape.text(self.stack[n]));
                    self.stack.truncate(from);
                    self.push_maker(code, module.unwrap_or(b"?"), name.unwrap_or(b"?"))?;
                }
                REDUCE => {
                    let from = self.top(2).map_err(|_| ops::refused(code, self.at))?;
                    let [maker, arguments] = [self.stack[from], self.stack[from + 1]];
                    let maker = self.tape.nodes[maker as usize];
                    let Some(maker) = Maker::at(maker.a).filter(|_| maker.kind == Kind::Maker)
                    else {
                        return Err(ops::refused(code, self.at));
                    };
                    let made = self.tape.call(maker, arguments);
                    let made = made.ok_or_else(|| self.wrong("not what this is called with"))?;
                    self.stack.truncate(from);
                    self.push(made);
                }
                INT | LONG | FLOAT | STRING | UNICODE | GET | PUT => old::run(self, code)?,
                STOP => return self.stop(),
                _ => return Err(ops::refused(code, self.at)),
            }
        }
    }

    /// What is called by this name, if it is one of the few.
    fn push_maker(&mut self, code: u8, module: &[u8], name: &[u8]) -> Result<()> {
        match natives::find(module, name) {
            Some(maker) => {
                self.push(Node::new(Kind::Maker, maker.number(), 0));
                Ok(())
            }
            None => Err(ops::refused_name(code, self.at, module, name)),
        }
    }

    fn stop(&mut self) -> Result<()> {
        let [root] = self.stack[..] else {
            return Err(self.wrong(&format!("{} values instead of one", self.stack.len())));
        };
        match self.tape.input.len() - self.pos {
            0 => {
                self.tape.root = root;
                Ok(())
            }
            more => {
                Err(Error::malformed(format!("{more} bytes after the record")).at(self.pos as u64))
            }
        }
    }

    fn push_long(&mut self, len: usize) -> Result<()> {
        if len > 8 {
            return self.push_span(Kind::Long, len);
        }
        let bytes = self.take(len)?;
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..len].copy_from_slice(bytes);
        self.push(Node::wide(Kind::Int, u64::from_le_bytes(wide)));
        Ok(())
    }
}
