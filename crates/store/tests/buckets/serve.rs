//! A server on a thread of its own.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use tokio::net::TcpListener;

/// The bucket of all tests.
pub(crate) const BUCKET: &str = "profiles";

/// Serves until the process ends, on a thread of its own: a test and what it tests block theirs.
pub(crate) fn serve<F: Future<Output = ()>>(
    server: impl FnOnce(TcpListener) -> F + Send + 'static,
) -> SocketAddr {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            sender.send(address).expect("the test waits for it");
            server(listener).await;
        });
    });
    receiver.recv().expect("the server starts")
}
