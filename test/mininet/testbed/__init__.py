"""The experiment testbed: a client, a router and a server on emulated links."""
