package policy

// withListen returns the edits that set the key "listen" in the policy base.
func withListen(value string) []string {
	return []string{"version: 1\n", "version: 1\nlisten: " + value + "\n"}
}

func refusedListens() []policyCase {
	return []policyCase{
		{name: "an address without a port", edits: withListen("127.0.0.1")},
		{name: "an address with a port of nobody", edits: withListen(`"127.0.0.1:70000"`)},
		{name: "every interface", edits: withListen(`":9464"`)},
		{name: "metrics for everybody", edits: withListen(`"0.0.0.0:9464"`)},
		{name: "metrics for everybody in a mapping", edits: withListen(`{address: "shop.example:9464"}`)},
		{name: "encrypted metrics for everybody", edits: withListen(`{address: "0.0.0.0:9464", tls: {certificate: cert.pem, key: key.pem}}`)},
		{name: "a certificate without its key", edits: withListen(`{address: "127.0.0.1:9464", tls: {certificate: cert.pem}}`), shape: true},
		{name: "a restart at each outage", edits: withListen(`{address: "127.0.0.1:9464", restart_on_outage: 1s}`)},
		{name: "a token without an address", edits: withListen("{token_file: token}"), shape: true},
	}
}

func acceptedListens() []policyCase {
	return []policyCase{
		{name: "metrics on loopback", edits: withListen(`"127.0.0.1:9464"`)},
		{name: "a restart after an outage", edits: withListen(`{address: "127.0.0.1:9464", restart_on_outage: 10m}`)},
		{name: "metrics on loopback of IPv6", edits: withListen(`{address: "[::1]:9464"}`)},
		{name: "metrics for who has a certificate", edits: withListen(`{address: "0.0.0.0:9464", tls: {certificate: cert.pem, key: key.pem, clients: clients.pem}}`)},
		{name: "metrics for who has a token", edits: withListen(`{address: "0.0.0.0:9464", token_file: token}`)},
	}
}
