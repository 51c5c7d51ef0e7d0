//! The BPF programs, their loader and the typed events they emit.
