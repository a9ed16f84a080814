// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a manager's records survive a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use manager_proto::record::Change;

/// Marks a database as a manager's: "pspm".
const APPLICATION_ID: i64 = 0x7073_706d;
/// Version of the tables.
const VERSION: i64 = 2;

/// Keys and values that survive a crash.
pub trait Store: Send {
    /// Returns all records, by key.
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Applies all changes, or none. They are durable when it returns.
    ///
    /// # Errors
    /// If the store cannot be written; then nothing has changed, or all has.
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError>;

    /// Makes these all the records that there are. A request's stay together.
    ///
    /// # Errors
    /// If the store cannot be read or written; then some may have changed.
    fn rewrite(&mut self, all: &[Change]) -> Result<(), StoreError> {
        let kept: BTreeSet<&str> = all.iter().map(|of| of.key.as_str()).collect();
        let gone = self.load()?.into_iter().map(|(key, _)| key);
        let gone = gone.filter(|key| !kept.contains(key.as_str()));
        let gone = gone.map(|key| Change { key, value: None });
        let request = |of: &Change| of.key.rsplit('/').next().map(str::to_owned);
        let mut changes: Vec<_> = gone.collect();
        changes.sort_by_cached_key(request);
        // What is gone goes first: its bytes may be another's.
        let first = changes.len();
        changes.extend_from_slice(all);
        if let Some(all) = changes.get_mut(first..) {
            all.sort_by_cached_key(request);
        }
        self.apply(&changes)
    }

    /// Returns whether it has lost changes since the last question: it was brought back from a backup.
    fn has_forgotten(&mut self) -> bool {
        false
    }

    /// Returns why nothing may be added to it: it is full.
    fn full(&self) -> Option<&str> {
        None
    }

    /// Returns whether nobody else may write it at present.
    fn is_ours(&self) -> bool {
        true
    }
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("store {path}: {problem}")]
pub struct StoreError {
    path: String,
    problem: String,
    is_deposed: bool,
}

impl StoreError {
    pub(crate) fn new(path: &str, problem: String) -> Self {
        Self {
            path: path.to_owned(),
            problem,
            is_deposed: false,
        }
    }

    /// Returns that another manager may have the seat.
    pub(crate) fn deposed() -> Self {
        Self {
            is_deposed: true,
            ..Self::new("etcd", "another manager may decide now".to_owned())
        }
    }

    /// Returns whether it is another manager that decides, and nothing is wrong with the store.
    pub fn is_deposed(&self) -> bool {
        self.is_deposed
    }
}

/// A store that lasts as long as the process, for tests and for trying things out.
#[derive(Debug, Default)]
pub struct MemoryStore(BTreeMap<String, Vec<u8>>);

impl Store for MemoryStore {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let records = self.0.iter();
        Ok(records.map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        for Change { key, value } in changes {
            match value {
                Some(value) => self.0.insert(key.clone(), value.clone()),
                None => self.0.remove(key),
            };
        }
        Ok(())
    }
}

/// A SQLite database in one file, with its journal beside it. One process uses it at a time.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens or creates a database.
    ///
    /// # Errors
    /// If the file cannot be written, is used by another process, or is no store of a manager.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let wrong = |problem: String| StoreError::new(&path.display().to_string(), problem);
        let connection = Connection::open(path).map_err(|error| wrong(error.to_string()))?;
        let mut store = Self {
            connection,
            path: path.to_owned(),
        };
        let of_application = store
            .prepare()
            .map_err(|error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                    wrong("another process uses it".to_owned())
                }
                Some(rusqlite::ErrorCode::NotADatabase) => {
                    wrong("it is no database, expected one that pspacer manager made".to_owned())
                }
                _ => wrong(error.to_string()),
            })?;
        match of_application {
            (APPLICATION_ID, VERSION) => Ok(store),
            (APPLICATION_ID, version) => Err(wrong(format!(
                "its version is {version}, expected {VERSION}"
            ))),
            _ => Err(wrong(
                "it is another program's database, expected one that pspacer manager made"
                    .to_owned(),
            )),
        }
    }

    /// Sets the connection up, and makes the table in a new file; returns whose it is.
    fn prepare(&mut self) -> rusqlite::Result<(i64, i64)> {
        let connection = &mut self.connection;
        connection.busy_timeout(std::time::Duration::ZERO)?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let is_new: bool =
            connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
                row.get(0)
            })?;
        let pragma = |connection: &Connection, name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let application_id = pragma(connection, "application_id")?;
        if application_id != APPLICATION_ID && !(is_new && application_id == 0) {
            return Ok((application_id, 0));
        }
        // A commit returns when the journal is on the disk.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        if is_new {
            let transaction = connection.transaction()?;
            transaction.execute_batch(
                "CREATE TABLE record (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
            )?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
        }
        Ok((
            pragma(connection, "application_id")?,
            pragma(connection, "user_version")?,
        ))
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::new(&self.path.display().to_string(), error.to_string())
    }

    fn read_all(&self) -> rusqlite::Result<Vec<(String, Vec<u8>)>> {
        let mut statement = self
            .connection
            .prepare("SELECT key, value FROM record ORDER BY key")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    fn write_all(&mut self, changes: &[Change]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut put = transaction
                .prepare("INSERT OR REPLACE INTO record (key, value) VALUES (?1, ?2)")?;
            let mut remove = transaction.prepare("DELETE FROM record WHERE key = ?1")?;
            for Change { key, value } in changes {
                match value {
                    Some(value) => put.execute(params![key, value])?,
                    None => remove.execute(params![key])?,
                };
            }
        }
        transaction.commit()
    }
}

impl Store for SqliteStore {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.read_all().map_err(|error| self.failed(&error))
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.write_all(changes).map_err(|error| self.failed(&error))
    }
}
