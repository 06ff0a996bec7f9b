//! Opening places that verbs were given by name.
