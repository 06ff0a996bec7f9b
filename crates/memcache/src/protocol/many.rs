//! Pipelined calls: their replies come in the same order.

use super::{Answer, CHUNK, Call, Exchange, Input, Sent};
use crate::{Result, key::Form};

/// Calls by number, and what is done with their answers.
pub struct Many<'a, C, F> {
    sent: Sent<'a>,
    /// The numbers of the calls, and how their keys are sent.
    numbers: &'a [(usize, Form)],
    call: C,
    each: F,
    next: usize,
    answered: usize,
}

impl<'a, 'c, C: Fn(usize) -> Call<'c>, F: FnMut(usize, Result<Answer>)> Many<'a, C, F> {
    /// The calls of these numbers. `call` makes one of its number; it is asked twice for each.
    pub fn new(sent: Sent<'a>, numbers: &'a [(usize, Form)], call: C, each: F) -> Self {
        Many { sent, numbers, call, each, next: 0, answered: 0 }
    }

    /// The numbers of those that have no answer.
    pub fn unanswered(&self) -> &'a [(usize, Form)] {
        &self.numbers[self.answered..]
    }
}

impl<'c, C: Fn(usize) -> Call<'c>, F: FnMut(usize, Result<Answer>)> Exchange for Many<'_, C, F> {
    fn write(&mut self, out: &mut Vec<u8>) {
        while out.len() < CHUNK
            && let Some(&(number, form)) = self.numbers.get(self.next)
        {
            (self.call)(number).write(form, &self.sent, out);
            self.next += 1;
        }
    }

    fn written(&self) -> bool {
        self.next == self.numbers.len()
    }

    fn read(&mut self, input: &mut Input) -> Result<bool> {
        while let Some(&(number, _)) = self.numbers[..self.next].get(self.answered) {
            let Some(answer) = (self.call)(number).read(&self.sent, input)? else { break };
            self.answered += 1;
            (self.each)(number, answer);
        }
        if self.answered == self.next && !input.is_empty() {
            return Err(super::reply::out_of_step(input.unread()));
        }
        Ok(self.answered == self.numbers.len())
    }

    fn again(&mut self) -> bool {
        self.next = 0;
        let once = |&(number, _): &(usize, Form)| (self.call)(number).repeatable();
        self.answered == 0 && self.numbers.iter().all(once)
    }
}
