//! Times and decimals among the plain: the calls that make them, run on a stack of a few places.

use super::{
    super::{
        natives::{self, Item, Maker},
        ops::*,
        text::Text,
    },
    Direct, NOWHERE, odd,
};
use crate::Result;

/// The memoized timezone of UTC.
const UTC: (u32, u32) = (u32::MAX, 1);
/// The first of the memoized classes, by their numbers.
const MAKERS: (u32, u32) = (u32::MAX, 2);
/// How many values a call of ours ever has on the stack: three classes and three numbers.
const CALL: usize = 8;

impl<'de, T: Text<'de>> Direct<'de, T> {
    /// The value of a call that begins at `start`: `datetime(...)`, `Decimal(...)`. The stack is as
    /// small as Python needs for these; anything larger is for the machine.
    #[inline(never)]
    fn call(&mut self, start: usize) -> Result<Item<'de>> {
        #[derive(Clone, Copy)]
        enum On<'de> {
            Item(Item<'de>),
            Maker(Maker),
            /// So many of the values below.
            Tuple(usize),
        }
        self.pos = start;
        let mut stack = [On::Tuple(0); CALL];
        let mut height = 0usize;
        loop {
            let code = self.next()?;
            let mut memo = NOWHERE;
            let link = match code {
                BINGET => Some(usize::from(self.array::<1>()?[0])),
                LONG_BINGET => Some(u32::from_le_bytes(self.array()?) as usize),
                _ => None,
            };
            let class = link.and_then(|n| match self.memo.get(n) {
                Some(&UTC) => Some(On::Item(Item::Zone(0))),
                Some(&(u32::MAX, n)) => Maker::at(n.checked_sub(MAKERS.1)?).map(On::Maker),
                _ => None,
            });
            let pushed = match (code, class, link) {
                (_, Some(class), _) => {
                    self.budget.spend(8)?;
                    class
                }
                (_, None, Some(n)) => On::Item(Item::Text(self.linked(n)?)),
                (SHORT_BINUNICODE, ..) => {
                    let [len] = self.array()?;
                    memo.0 = self.pos as u32;
                    let text = self.take(len.into())?;
                    memo.1 = self.pos as u32;
                    On::Item(Item::Text(text))
                }
                (SHORT_BINBYTES, ..) => {
                    let [len] = self.array()?;
                    On::Item(Item::Bytes(self.take(len.into())?))
                }
                (BININT1, ..) => On::Item(Item::Int(self.array::<1>()?[0].into())),
                (BININT2, ..) => On::Item(Item::Int(u16::from_le_bytes(self.array()?).into())),
                (BININT, ..) => On::Item(Item::Int(i32::from_le_bytes(self.array()?).into())),
                (STACK_GLOBAL, ..) => {
                    let names = height.checked_sub(2).map(|from| (stack[from], stack[from + 1]));
                    let Some((On::Item(Item::Text(module)), On::Item(Item::Text(name)))) = names
                    else {
                        return Err(odd());
                    };
                    height -= 2;
                    let maker = natives::find(module, name).ok_or_else(odd)?;
                    memo = (MAKERS.0, MAKERS.1 + maker.number());
                    On::Maker(maker)
                }
                (TUPLE1, ..) => On::Tuple(1),
                (TUPLE2, ..) => On::Tuple(2),
                (TUPLE3, ..) => On::Tuple(3),
                (REDUCE, ..) => {
                    let Some(On::Tuple(len)) = height.checked_sub(1).map(|top| stack[top]) else {
                        return Err(odd());
                    };
                    let Some(below) = height.checked_sub(len + 2) else { return Err(odd()) };
                    let On::Maker(maker) = stack[below] else { return Err(odd()) };
                    let mut arguments = [Item::Other; 3];
                    for (argument, on) in arguments.iter_mut().zip(&stack[below + 1..height - 1]) {
                        let On::Item(item) = on else { return Err(odd()) };
                        *argument = *item;
                    }
                    height = below;
                    let made = natives::call(maker, &arguments[..len]).ok_or_else(odd)?;
                    if made == Item::Zone(0) {
                        memo = UTC;
                    }
                    On::Item(made)
                }
                _ => return Err(odd()),
            };
            *stack.get_mut(height).ok_or_else(odd)? = pushed;
            height += 1;
            self.memoize(memo.0, memo.1)?;
            if let (1, On::Item(made)) = (height, pushed)
                && let Item::Time(_) | Item::Naive(_) | Item::Date(_) | Item::Decimal(_) = made
            {
                return Ok(made);
            }
        }
    }

    /// What a call made, if one begins with this opcode, which was just taken: with a class that was
    /// memoized, or the name of its module.
    #[inline(always)]
    pub(super) fn made(&mut self, code: u8) -> Result<Option<Item<'de>>> {
        let start = self.pos - 1;
        let rest = self.input.get(self.pos..).unwrap_or_default();
        let begins = match (code, rest) {
            (BINGET, &[n, ..]) => {
                matches!(self.memo.get(usize::from(n)), Some(&(u32::MAX, 2..)))
            }
            (SHORT_BINUNICODE, [8, name @ ..]) => name.starts_with(b"datetime"),
            (SHORT_BINUNICODE, [7, name @ ..]) => name.starts_with(b"decimal"),
            _ => false,
        };
        if !begins {
            return Ok(None);
        }
        self.call(start).map(Some)
    }
}
