package policy

// The function listens returns the edits that set the key "listen" in the policy base.
func listens(value string) []string {
	return []string{"version: 1\n", "version: 1\nlisten: " + value + "\n"}
}

func refusedListens() []policyCase {
	return []policyCase{
		{name: "an address without a port", edits: listens("127.0.0.1")},
		{name: "an address with a port of nobody", edits: listens(`"127.0.0.1:70000"`)},
		{name: "every interface", edits: listens(`":9464"`)},
		{name: "metrics for everybody", edits: listens(`"0.0.0.0:9464"`)},
		{name: "metrics for everybody in a mapping", edits: listens(`{address: "shop.example:9464"}`)},
		{name: "encrypted metrics for everybody", edits: listens(`{address: "0.0.0.0:9464", tls: {certificate: cert.pem, key: key.pem}}`)},
		{name: "a certificate without its key", edits: listens(`{address: "127.0.0.1:9464", tls: {certificate: cert.pem}}`), shape: true},
		{name: "a restart at each outage", edits: listens(`{address: "127.0.0.1:9464", restart_on_outage: 1s}`)},
		{name: "a token without an address", edits: listens("{token_file: token}"), shape: true},
	}
}

func acceptedListens() []policyCase {
	return []policyCase{
		{name: "metrics on loopback", edits: listens(`"127.0.0.1:9464"`)},
		{name: "a restart after an outage", edits: listens(`{address: "127.0.0.1:9464", restart_on_outage: 10m}`)},
		{name: "metrics on loopback of IPv6", edits: listens(`{address: "[::1]:9464"}`)},
		{name: "metrics for who has a certificate", edits: listens(`{address: "0.0.0.0:9464", tls: {certificate: cert.pem, key: key.pem, clients: clients.pem}}`)},
		{name: "metrics for who has a token", edits: listens(`{address: "0.0.0.0:9464", token_file: token}`)},
	}
}
