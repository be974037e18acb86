// SPDX-License-Identifier: GPL-2.0-or-later
//! The control socket of the built daemon: whoever asks without end keeps nobody waiting.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use lab::{Net, PATIENCE};
use pemi::daemon::control;
use serde_json::json;

/// For SIGTERM to end the daemon.
const END: Duration = Duration::from_secs(1);

#[test]
fn who_asks_without_end_keeps_nobody_waiting() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&[]);
    let askers = [(); 8].map(|()| UnixStream::connect(&daemon.control).unwrap());
    let ended = thread::scope(|scope| {
        for mut asker in &askers {
            scope.spawn(move || {
                let requests = "{\"method\":\"status\"}\n".repeat(3000);
                while asker.write_all(requests.as_bytes()).is_ok() {}
            });
            scope.spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while asker.read(&mut buffer).is_ok_and(|len| len > 0) {}
            });
        }
        // Some of what they ask has been answered, and there is more all the time.
        thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        for _ in 0..5 {
            control::ask(&daemon.control, &json!({"method": "status"})).unwrap();
        }
        println!("five answers in {:?}", start.elapsed());
        assert!(start.elapsed() < PATIENCE / 10, "{:?}", start.elapsed());
        let start = Instant::now();
        daemon.signal(libc::SIGTERM);
        let (status, log) = daemon.end();
        assert!(status.success(), "{log}");
        start.elapsed()
    });
    println!("ended in {ended:?}");
    assert!(ended < END, "{ended:?}");
}
