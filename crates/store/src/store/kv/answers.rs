//! Errors for answers that do not match the request.

use crate::{Error, Result};

/// The error of an answer that is none to what was asked.
pub(crate) fn out_of_step(asked: &str, answer: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]);
    Error::malformed(format!("unexpected answer to {asked}: {shown:?}"))
}

/// As many values as were asked for, no fewer and no more.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) otherwise.
#[cfg_attr(not(feature = "redis"), allow(dead_code))]
pub(crate) fn as_many<T>(asked: &str, keys: usize, values: Vec<T>) -> Result<Vec<T>> {
    match values.len() == keys {
        true => Ok(values),
        false => Err(Error::malformed(format!(
            "the answer to {asked} has {} values for {keys} keys",
            values.len()
        ))),
    }
}
