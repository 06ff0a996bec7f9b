//! Private, throw-away servers.
