//! HTTP and gRPC surfaces over store and query, and the embedded window.
