mod formats;
mod framing;
