//! The router: sessions, counting, and when to quACK.
