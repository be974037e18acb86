// SPDX-License-Identifier: GPL-2.0-or-later
//! What a download has to do with every stack.

use super::{Server, client, json};

/// One stack's program.
pub struct Goodput {
    pub program: &'static str,
    /// As it names its stack.
    pub stack: &'static str,
}

impl Goodput {
    /// Of every size, and the server ends when it is told to.
    pub fn downloads(&self, listen: &str, cc: &str) {
        let server = Server::start(self.program, listen, &["--cc", cc]);
        for bytes in [0, 1, 65_521, 3_000_000] {
            let output = client(self.program, &server.address, &["--bytes", &bytes.to_string()]);
            assert!(output.status.success());
            let result = json(&output);
            assert_eq!(result["app"], "goodput");
            assert_eq!(result["stack"], self.stack);
            assert_eq!(result["complete"], true);
            assert_eq!(result["bytes"], bytes);
            let (fct, handshake) = (&result["fct_s"], &result["handshake_s"]);
            assert!(fct.as_f64() > handshake.as_f64(), "{result}");
        }
        assert!(server.terminate().success());
    }

    /// With a fixed MTU.
    pub fn serves_several_at_once(&self, server_options: &[&str]) {
        let options = [&["--mtu", "1252"], server_options].concat();
        let server = Server::start(self.program, "127.0.0.1:0", &options);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let options = ["--bytes", "1000000", "--mtu", "1252"];
                    let result = json(&client(self.program, &server.address, &options));
                    assert_eq!(result["complete"], true);
                });
            }
        });
    }

    /// An error, and a result that says so.
    pub fn misses_a_server_that_is_not_there(&self) {
        let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = gone.local_addr().unwrap().to_string();
        let options = ["--bytes", "1000", "--timeout", "0.2"];
        let output = client(self.program, &address, &options);
        assert!(!output.status.success());
        let result = json(&output);
        assert_eq!(result["complete"], false);
        assert!(result["fct_s"].is_null());
        assert!(String::from_utf8_lossy(&output.stderr).contains("not complete after 0.2 s"));
    }
}
