// SPDX-License-Identifier: MIT OR Apache-2.0
//! A value that may be replaced while others use it: what SIGHUP reads again.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that another one may replace while others use it.
#[derive(Debug)]
pub struct Replaceable<T>(RwLock<Arc<T>>);

impl<T> Replaceable<T> {
    /// Returns a place for values, with the first one in it.
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// Returns the value of now; it stays as it is for whoever has it.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}
