//! What to observe and how to name it: processes, labels, collectors, exporters, spool.
