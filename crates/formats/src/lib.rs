//! Profile formats: one module per format, bytes to Profile and back.
