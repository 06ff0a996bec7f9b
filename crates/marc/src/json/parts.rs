//! The two required parts of a MARC-in-JSON record, leader and fields: every reader checks that it has met both.

use crate::{Error, Leader, Record, Result};

/// Which parts were there.
#[derive(Debug, Default)]
pub struct Parts {
    leader: bool,
    fields: bool,
}

impl Parts {
    /// Takes the leader, whose text begins at this byte.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it has not 24 bytes.
    pub fn leader(&mut self, text: &[u8], at: usize, record: &mut Record) -> Result<()> {
        let leader = text.try_into().map_err(|_| {
            let n = text.len();
            Error::malformed(format!("a MARC leader of {n} bytes instead of 24")).at(at as u64)
        })?;
        record.set_leader(Leader(leader));
        self.leader = true;
        Ok(())
    }

    /// The fields were there.
    pub fn fields(&mut self) {
        self.fields = true;
    }

    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed), naming the part that is missing.
    pub fn whole(&self) -> Result<()> {
        let missing = match (self.leader, self.fields) {
            (false, _) => "leader",
            (_, false) => "fields",
            _ => return Ok(()),
        };
        Err(Error::malformed(format!("a MARC record without {missing:?}")).at(0))
    }
}
