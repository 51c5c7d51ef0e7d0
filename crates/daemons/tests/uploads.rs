//! Files on their way to a bucket, and buckets that are not there.

use std::io;
use std::io::Read;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::FakeBucket;
use crate::support::block_on;
use crate::support::moto::BUCKET;
use crate::support::moto::Moto;
use crate::support::publish;
use crate::support::wait_until;
use candela_daemons::Bucket;
use candela_daemons::BucketOptions;
use candela_daemons::ObjectSink;
use candela_daemons::Outbox;
use candela_daemons::OutboxLimits;
use candela_daemons::StaticKeys;
use candela_daemons::Stop;
use candela_daemons::Turn;
use candela_daemons::UploadError;
use candela_daemons::Uploader;
use candela_fleet::Destination;

const NOW: i64 = 1_771_601_412;

fn destination() -> Destination {
    Destination::parse(&format!("s3://{BUCKET}"), Some("perf-data")).expect("a bucket")
}

fn options(moto: &Moto, secret: &str) -> BucketOptions {
    options_at(&moto.endpoint(), secret)
}

fn options_at(endpoint: &str, secret: &str) -> BucketOptions {
    BucketOptions {
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        keys: Some(StaticKeys {
            id: "testing".to_owned(),
            secret: secret.to_owned(),
        }),
        ..BucketOptions::default()
    }
}

fn uploader(outbox: &Arc<Outbox>, sink: Arc<dyn ObjectSink>) -> Uploader {
    Uploader::new(Arc::clone(outbox), sink, destination(), "node-1")
}

#[test]
fn files_wait_longer_and_longer_for_a_bucket_and_keep_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    let bucket = Arc::new(FakeBucket::default());
    let mut uploader = uploader(&outbox, Arc::<FakeBucket>::clone(&bucket));
    let stop = Stop::default();
    assert_eq!(block_on(uploader.turn(&stop)), Turn::Empty);
    for second in 0..3 {
        publish(&outbox, NOW + second, &format!("file {second}"));
    }
    bucket.set_down(true);
    let mut waits = Vec::new();
    for _ in 0..9 {
        let Turn::Wait(wait) = block_on(uploader.turn(&stop)) else {
            panic!("the bucket is down");
        };
        waits.push(wait);
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
    assert!(waits[0] <= Duration::from_secs(1) && waits[8] >= Duration::from_secs(60));
    assert!(waits[8] <= Duration::from_secs(120));
    assert!(uploader.status().error.is_some());
    assert_eq!(outbox.counts().waiting, 3);
    bucket.set_down(false);
    while block_on(uploader.turn(&stop)) == Turn::Uploaded {}
    let expected = [
        "perf-data/node-1/20260220T153012-perf-data.gz",
        "perf-data/node-1/20260220T153013-perf-data.gz",
        "perf-data/node-1/20260220T153014-perf-data.gz",
    ];
    assert_eq!(bucket.keys(), expected);
    assert_eq!(uploader.status().error, None);
    assert_eq!(uploader.status().last_keys, expected);
    assert_eq!(outbox.counts().uploaded, 3);
}

#[test]
fn a_thread_uploads_what_comes_and_ends_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    let bucket = Arc::new(FakeBucket::default());
    let thread = uploader(&outbox, Arc::<FakeBucket>::clone(&bucket));
    let thread = thread.spawn().expect("a thread");
    for second in 0..5 {
        publish(&outbox, NOW + second, "text");
    }
    wait_until("all five", || bucket.keys().len() == 5);
    bucket.set_down(true);
    publish(&outbox, NOW + 9, "text");
    wait_until("it is told", || thread.status().error.is_some());
    drop(thread);

    // The tenth failure in a row is followed by a wait of a minute and a half at least.
    let mut failing = uploader(&outbox, Arc::<FakeBucket>::clone(&bucket));
    for _ in 0..9 {
        let turn = block_on(failing.turn(&Stop::default()));
        assert!(matches!(turn, Turn::Wait(_)), "{turn:?}");
    }
    let refused = bucket.refused();
    let thread = failing.spawn().expect("a thread");
    wait_until("it waits", || bucket.refused() > refused);
    let began = Instant::now();
    drop(thread);
    assert!(began.elapsed() < support::PATIENCE, "it ends at once");
    assert_eq!(outbox.counts().waiting, 1);
}

/// Where the child of [`what_is_killed_in_the_middle_leaves_no_torn_object`] uploads from, and to.
const CHILD: &str = "CANDELA_TEST_UPLOADS";

/// Nothing, unless it is that child.
#[test]
fn child_that_uploads() {
    let Ok(told) = std::env::var(CHILD) else {
        return;
    };
    let (folder, endpoint) = told.split_once('|').expect("a folder and an endpoint");
    let outbox = Outbox::open(Path::new(folder), OutboxLimits::default()).expect("an outbox");
    let bucket = Bucket::connect(&destination(), &options_at(endpoint, "testing"));
    let mut uploader = uploader(&outbox, Arc::new(bucket.expect("a client")));
    block_on(uploader.turn(&Stop::default()));
}

/// Lets so many bytes of one connection through, and then no more.
struct StallingProxy {
    address: SocketAddr,
    stalled: Receiver<()>,
    release: Sender<()>,
    thread: JoinHandle<()>,
}

impl StallingProxy {
    fn start(to: SocketAddr, most: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, stalled) = channel();
        let (release, released) = channel();
        let thread = std::thread::spawn(move || {
            let (client, _) = listener.accept().expect("the child connects");
            let mut server = TcpStream::connect(to).expect("it answers");
            io::copy(&mut client.take(most), &mut server).expect("they talk");
            sender.send(()).expect("the test waits");
            let _ = released.recv();
        });
        Self {
            address,
            stalled,
            release,
            thread,
        }
    }

    /// Ends both connections.
    fn end(self) {
        drop(self.release);
        self.thread.join().expect("no panic");
    }
}

mod host {
    use super::*;

    #[test]
    fn a_real_bucket_that_goes_down_and_comes_back() {
        let Some(moto) = Moto::start(false) else {
            support::skipped("`scripts/install-deps test` installs moto");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
        let connect = |moto: &Moto| -> Arc<dyn ObjectSink> {
            Arc::new(Bucket::connect(&destination(), &options(moto, "testing")).expect("a client"))
        };
        let mut uploader = uploader(&outbox, connect(&moto));
        let stop = Stop::default();
        // Large enough for many packets.
        let text = "line of a dump\n".repeat(200_000);
        publish(&outbox, NOW, &text);
        assert_eq!(block_on(uploader.turn(&stop)), Turn::Uploaded);
        let key = "perf-data/node-1/20260220T153012-perf-data.gz";
        assert_eq!(moto.keys(), [key]);
        assert_eq!(moto.object(key), text.as_bytes());

        drop(moto);
        for second in 1..4 {
            publish(&outbox, NOW + second, &format!("file {second}"));
        }
        assert!(matches!(block_on(uploader.turn(&stop)), Turn::Wait(_)));
        let error = uploader.status().error.expect("it is down").to_string();
        assert!(
            error.contains("is not uploaded yet") && !error.contains('\n'),
            "{error}"
        );
        // The agent is started anew meanwhile.
        drop(uploader);
        drop(outbox);
        let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
        assert_eq!(outbox.counts().waiting, 3);
        let moto = Moto::start(false).expect("it was there before");
        let mut uploader =
            Uploader::new(Arc::clone(&outbox), connect(&moto), destination(), "node-1");
        while block_on(uploader.turn(&stop)) == Turn::Uploaded {}
        let expected = ["13", "14", "15"]
            .map(|second| format!("perf-data/node-1/20260220T1530{second}-perf-data.gz"));
        assert_eq!(uploader.status().last_keys, expected);
        assert_eq!(moto.keys(), expected);
        for (key, text) in expected.iter().zip(["file 1", "file 2", "file 3"]) {
            assert_eq!(moto.object(key), text.as_bytes());
        }
    }

    #[test]
    fn what_is_killed_in_the_middle_leaves_no_torn_object() {
        let Some(moto) = Moto::start(false) else {
            support::skipped("`scripts/install-deps test` installs moto");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
        let text = "line of a dump\n".repeat(500_000);
        publish(&outbox, NOW, &text);
        drop(outbox);
        let proxy = StallingProxy::start(moto.address, 1 << 20);
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "uploads::child_that_uploads"])
            .env(
                CHILD,
                format!("{}|http://{}", folder.path().display(), proxy.address),
            )
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let stalled = proxy.stalled.recv_timeout(support::PATIENCE);
        stalled.expect("it uploads");
        child.kill().expect("killed, as by the kernel");
        child.wait().expect("it was there");
        proxy.end();
        assert_eq!(moto.keys(), Vec::<String>::new(), "nothing of it is seen");

        let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
        assert_eq!(outbox.counts().waiting, 1);
        let bucket = Bucket::connect(&destination(), &options(&moto, "testing")).expect("a client");
        let mut uploader = uploader(&outbox, Arc::new(bucket));
        assert_eq!(block_on(uploader.turn(&Stop::default())), Turn::Uploaded);
        let key = "perf-data/node-1/20260220T153012-perf-data.gz";
        assert_eq!(moto.keys(), [key]);
        assert_eq!(moto.object(key), text.as_bytes());
    }

    #[test]
    fn wrong_credentials_and_missing_buckets_are_named_and_nothing_is_lost() {
        let Some(moto) = Moto::start(true) else {
            support::skipped("`scripts/install-deps test` installs moto");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
        publish(&outbox, NOW, "text");
        let stop = Stop::default();
        let bucket = Bucket::connect(&destination(), &options(&moto, "wrong")).expect("a client");
        let mut refused = uploader(&outbox, Arc::new(bucket));
        assert!(matches!(block_on(refused.turn(&stop)), Turn::Wait(_)));
        let error = refused.status().error.expect("an error");
        assert!(matches!(error, UploadError::NotAllowed { .. }), "{error:?}");
        assert!(
            error
                .to_string()
                .contains("give this node's identity the right"),
            "{error}"
        );
        drop(moto);

        let moto = Moto::start(false).expect("it was there before");
        let elsewhere = Destination::parse("s3://nowhere-at-all", None).expect("a bucket");
        let bucket = Bucket::connect(&elsewhere, &options(&moto, "testing")).expect("a client");
        let mut missing = Uploader::new(Arc::clone(&outbox), Arc::new(bucket), elsewhere, "node-1");
        assert!(matches!(block_on(missing.turn(&stop)), Turn::Wait(_)));
        let error = missing.status().error.expect("an error");
        assert!(matches!(error, UploadError::NoBucket { .. }), "{error:?}");
        let counts = outbox.counts();
        assert_eq!((counts.waiting, counts.all_dropped()), (1, 0));
    }
}
