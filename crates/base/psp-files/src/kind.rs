// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a path leads to.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// Returns what it is, if it is no regular file.
pub(crate) fn other(file_type: FileType) -> Option<&'static str> {
    let kinds = [
        (file_type.is_symlink(), "it is a link"),
        (file_type.is_dir(), "it is a directory"),
        (file_type.is_fifo(), "it is a fifo"),
        (file_type.is_socket(), "it is a socket"),
        (file_type.is_char_device(), "it is a character device"),
        (file_type.is_block_device(), "it is a block device"),
        (!file_type.is_file(), "it is no file"),
    ];
    kinds
        .iter()
        .find(|(is_it, _)| *is_it)
        .map(|(_, what)| *what)
}
